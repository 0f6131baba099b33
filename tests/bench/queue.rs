//! The queue, beside others in the same run: runs that do nothing, as wasm, recorded and kept.
//!
//! `trax bench queue` on SQLite with `synchronous=FULL` and on Postgres with `synchronous_commit=on`: the server that
//! `TRAX_TEST_POSTGRES_URL` names, where databases may be created, or a cluster of its own with the defaults of the
//! installed one. Then graphile-worker and pg-boss on the same server, if `TRAX_BENCH_PEERS` names a folder where
//! `npm install node@22 graphile-worker@0.18.0 pg-boss@12.38.0 pg` was run: nothing is downloaded here.
//!
//! `TRAX_BENCH_RUNS` is how many runs each part drains, 100,000 if it is not set.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

#[path = "../postgres/cluster.rs"]
mod cluster;

const TRAX: &str = env!("CARGO_BIN_EXE_trax");
const GUEST: &str = "target/guests/probe.wasm";
const PEERS: [&str; 2] = ["graphile-worker", "pg-boss"];

fn main() -> ExitCode {
    // Cargo says what it wants of a benchmark by options; a word asks for the benchmarks whose name has it.
    let mut words = env::args().skip(1).filter(|argument| !argument.starts_with('-'));
    let is_asked = |word: String| "queue".contains(&word);
    if !words.next().is_none_or(is_asked) || env::args().any(|argument| argument == "--test") {
        return ExitCode::SUCCESS;
    }
    let folder = env::temp_dir().join(format!("trax-bench-{}", std::process::id()));
    let done = measure(&folder);
    fs::remove_dir_all(folder.with_extension("files")).ok();
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            say(&format!("error: {problem}"));
            ExitCode::FAILURE
        }
    }
}

fn measure(folder: &Path) -> Result<(), String> {
    let runs = env::var("TRAX_BENCH_RUNS").unwrap_or_else(|_| "100000".to_owned());
    if !Path::new(GUEST).exists() {
        return Err(format!("{GUEST} is missing; run `cargo xtask guests`"));
    }
    let files = folder.with_extension("files");
    fs::create_dir_all(&files).map_err(|error| format!("{}: {error}", files.display()))?;
    say("trax on SQLite");
    trax(&format!("sqlite:{}", files.join("trax.db").display()), &runs)?;
    let server = Server::find(folder);
    say("trax on Postgres");
    trax(&server.database("trax")?, &runs)?;
    let Some(peers) = env::var_os("TRAX_BENCH_PEERS").map(PathBuf::from) else {
        say("for graphile-worker and pg-boss beside it: in an empty folder run");
        say("  npm install node@22 graphile-worker@0.18.0 pg-boss@12.38.0 pg");
        say("and name that folder in TRAX_BENCH_PEERS");
        return Ok(());
    };
    for peer in PEERS {
        say(&format!("{peer} on Postgres"));
        let url = server.database(&peer.replace('-', "_"))?;
        run_peer(&peers, peer, &url, &runs)?;
    }
    Ok(())
}

fn trax(url: &str, runs: &str) -> Result<(), String> {
    let mut command = Command::new(TRAX);
    command.args(["bench", "queue", GUEST, "--train", "probe-noop", "--input", r#"{"number":0}"#]);
    succeed(command.args(["--runs", runs, "--database", url]))
}

/// Modules are looked for from where a script is, so it is copied beside them.
fn run_peer(folder: &Path, peer: &str, url: &str, runs: &str) -> Result<(), String> {
    let script = format!("{peer}.js");
    let source = Path::new("tests/bench/peers").join(&script);
    let copy = folder.join(&script);
    fs::copy(&source, &copy).map_err(|error| format!("{}: {error}", copy.display()))?;
    let mut node = Command::new(folder.join("node_modules/.bin/node"));
    succeed(node.arg(&copy).arg(runs).env("DATABASE_URL", url))
}

/// A Postgres where databases may be created.
struct Server {
    /// Its URL up to the database's name, and after it.
    url: (String, String),
}

impl Server {
    fn find(folder: &Path) -> Self {
        if let Ok(url) = env::var("TRAX_TEST_POSTGRES_URL") {
            let (address, query) = url.split_once('?').unwrap_or((&url, ""));
            let slash = address.rfind('/').filter(|at| address[..*at].ends_with(|c| c != '/'));
            let address = slash.map_or(address, |at| &address[..at]);
            return Self { url: (format!("{address}/"), format!("?{query}")) };
        }
        cluster::start(folder, std::process::id(), "-c synchronous_commit=on");
        let query = format!("?host={}", folder.display());
        Self { url: ("postgres://trax@localhost/".to_owned(), query) }
    }

    /// The URL of a new database.
    fn database(&self, name: &str) -> Result<String, String> {
        let name = format!("bench_{}_{name}", std::process::id());
        let mut psql = Command::new("psql");
        psql.arg("--quiet").arg(format!("{}postgres{}", self.url.0, self.url.1));
        succeed(psql.args(["--command", &format!("CREATE DATABASE {name}")]))?;
        Ok(format!("{}{name}{}", self.url.0, self.url.1))
    }
}

fn succeed(command: &mut Command) -> Result<(), String> {
    let status = command.status().map_err(|error| format!("{command:?}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?} ended with {status}")) }
}

#[expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]
fn say(line: &str) {
    println!("{line}");
}
