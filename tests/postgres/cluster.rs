//! A Postgres cluster of one's own, from the installed server. The server refuses to run as root, so as root it runs as
//! `postgres` or `nobody`.

use std::fs;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Members of this role, which there is not yet, have to give a password.
pub(crate) const PASSWORD_ROLE: &str = "with_password";

/// Starts a cluster of the superuser `trax`, on a Unix socket in its folder, and the watcher that stops and removes it
/// when the process that it is for is gone.
pub(crate) fn start(folder: &Path, process: u32, settings: &str) {
    let user = user();
    fs::remove_dir_all(folder).ok();
    fs::create_dir(folder).expect("the temporary folder is writable");
    if let Some((uid, gid)) = user {
        chown(folder, Some(uid), Some(gid)).expect("root may give a folder away");
    }
    let data = folder.join("data");
    let mut initdb = program("initdb", folder);
    initdb.args(["--username=trax", "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8"]);
    succeed(initdb.arg("--no-sync").arg(&data));
    // The first line that fits counts.
    let rules = data.join("pg_hba.conf");
    let trusting = fs::read_to_string(&rules).expect("it was just made");
    let demanding = format!("local all +{PASSWORD_ROLE} scram-sha-256\n{trusting}");
    fs::write(rules, demanding).expect("it was just made");
    let settings =
        format!("-c listen_addresses= -c unix_socket_directories={} {settings}", folder.display());
    let mut pg_ctl = program("pg_ctl", folder);
    pg_ctl.args(["-w", "-s", "-o", &settings, "-l"]).arg(folder.join("log")).arg("-D").arg(&data);
    succeed(pg_ctl.arg("start"));
    let watcher = "while kill -0 $0 2>/dev/null; do sleep 1; done
        kill -QUIT $(head -n 1 $1/data/postmaster.pid); sleep 1; rm -rf $1 $1.lock";
    let shell = Command::new("sh")
        .args(["-c", &format!("({watcher}) &"), &process.to_string()])
        .arg(folder)
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    assert!(shell.is_ok_and(|status| status.success()), "a shell runs");
}

/// A program of the server, as whoever the server runs as.
pub(crate) fn program(name: &str, folder: &Path) -> Command {
    let mut command = Command::new(binaries().join(name));
    command.current_dir(folder).stdin(Stdio::null());
    if let Some((uid, gid)) = user() {
        command.uid(uid).gid(gid);
    }
    command
}

/// Runs a program that must succeed. The standard streams are not inherited: the server would hold them open long after
/// this test.
pub(crate) fn succeed(command: &mut Command) {
    let done = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    let is_done = done.as_ref().is_ok_and(std::process::ExitStatus::success);
    assert!(is_done, "{command:?}, for the Postgres of the tests, gave {done:?}");
}

/// The folder with the newest installed server.
fn binaries() -> PathBuf {
    let version = |folder: &Path| {
        folder.file_name().and_then(|name| name.to_str()?.parse::<u32>().ok()).unwrap_or(0)
    };
    let mut installed: Vec<PathBuf> = ["/usr/lib/postgresql", "/usr/local/lib/postgresql"]
        .iter()
        .filter_map(|root| fs::read_dir(root).ok())
        .flat_map(|entries| entries.flatten().map(|entry| entry.path()))
        .collect();
    installed.sort_by_key(|folder| version(folder));
    let debian = installed.iter().rev().map(|folder| folder.join("bin"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path: Vec<PathBuf> = std::env::split_paths(&path).collect();
    debian.chain(on_path).find(|folder| folder.join("initdb").exists() && folder.join("pg_ctl").exists()).expect(
        "the tests of the store need Postgres: install its server (Debian: `apt-get install postgresql`), \
         or let TRAX_TEST_POSTGRES_URL name a server where databases may be created",
    )
}

/// Who the server runs as, when this process is root.
pub(crate) fn user() -> Option<(u32, u32)> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let ids = |name: &str| {
        let line = users.lines().find(|line| line.starts_with(&format!("{name}:")))?;
        let mut fields = line.split(':').skip(2);
        Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
    };
    ids("postgres").or_else(|| ids("nobody")).or(Some((65534, 65534)))
}
