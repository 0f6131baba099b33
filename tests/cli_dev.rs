//! `trax dev` as a person meets it: one process that deploys, schedules, retries, and continues when started again.

use std::io::{BufRead, BufReader, Lines};
use std::process::{Child, ChildStdout, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::cli_store::Desk;
use crate::postgres::Database;

/// A `trax dev` that runs, told to print JSON.
struct Dev {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Dev {
    /// Starts it on the desk's folder, and gives what it deployed.
    fn start(desk: &Desk) -> (Self, Value) {
        let mut child = desk.command(&["dev", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut dev = Self { child, lines };
        let deployed = dev.next().expect("it says what it deployed");
        (dev, deployed)
    }

    fn next(&mut self) -> Option<Value> {
        let line = self.lines.next()?.unwrap();
        Some(serde_json::from_str(&line).unwrap())
    }

    /// Reads events up to the first that matches, and gives it.
    fn wait_for(&mut self, what: &str, matches: impl Fn(&Value) -> bool) -> Value {
        let mut seen = Vec::new();
        while let Some(event) = self.next() {
            if matches(&event) {
                return event;
            }
            seen.push(event.to_string());
        }
        panic!("it ended without {what}; it said:\n{}", seen.join("\n"))
    }

    /// Ends it as Ctrl-C does, and gives the exit code.
    fn interrupt(mut self) -> i32 {
        kill_process(Pid::from_child(&self.child), Signal::INT).unwrap();
        while self.next().is_some() {}
        self.child.wait().unwrap().code().unwrap()
    }
}

fn ended(event: &Value, manifest: &str, ending: &str) -> bool {
    event["event"] == "run_ended" && event["manifest"] == manifest && event["ending"] == ending
}

const MANIFESTS: &str = "
[scheduler]
polling_interval = '1s'
retry_delay = '1s'

[[manifest]]
id = 'greet'
train = 'hello'
every = '1s'
input = { name = 'Ada' }

[[manifest]]
id = 'recovers'
train = 'flaky'
every = '1h'
input = { failures = 1 }

[[manifest]]
id = 'gives-up'
train = 'flaky'
every = '1h'
input = { failures = 9 }
max_retries = 0
";

/// What happens to three manifests: one succeeds, one succeeds after a retry, one becomes a dead letter.
fn dev_runs_retries_gives_up_and_continues(desk: &Desk) {
    desk.guest("hello");
    desk.guest("flaky");
    desk.write("manifests.toml", MANIFESTS);

    let (mut dev, deployed) = Dev::start(desk);
    assert_eq!(deployed["manifests"][0]["change"], "new");
    dev.wait_for("a dead letter", |event| {
        event["event"] == "dead_lettered" && event["manifest"] == "gives-up"
    });
    let second = dev.wait_for("the second attempt", |event| {
        event["event"] == "run_started" && event["manifest"] == "recovers" && event["attempt"] == 2
    });
    let recovered = dev.wait_for("a recovery", |event| ended(event, "recovers", "completed"));
    assert_eq!(recovered["run"], second["run"]);
    assert_eq!(recovered["output"], "{\"attempt\":2}");
    assert_eq!(dev.interrupt(), 0);

    let failed =
        desk.trax(&["runs", "--manifest", "recovers", "--state", "failed", "--json"]).data();
    assert_eq!(failed["runs"][0]["failure"]["name"], "UpstreamUnavailable");
    let letters = desk.trax(&["dead-letters", "--json"]).data();
    assert_eq!(letters["dead_letters"][0]["manifest"], "gives-up");
    let id = recovered["run"].to_string();
    let shown = desk.trax(&["runs", "show", &id, "--json"]).data();
    assert_eq!(shown["input"]["failures"], 1);
    assert_eq!(shown["output"]["attempt"], 2);
    assert_eq!(shown["manifest"], "recovers");
    let text = desk.trax(&["runs", "show", &id]).out;
    assert!(text.starts_with(&format!("run {id}  flaky  completed  ")), "{text}");
    assert!(text.contains("\nchain\n  completed    Deliver  "), "{text}");
    let id = failed["runs"][0]["id"].to_string();
    let text = desk.trax(&["runs", "show", &id]).out;
    assert!(text.contains("\n  failed       Deliver  "), "{text}");
    assert!(text.contains("\n  not reached  Resolve\n"), "{text}");
    let resume = "resume: not possible. The run wrote no checkpoint, so it can only run again from the top.\n";
    assert!(text.ends_with(resume), "{text}");
    let shown = desk.trax(&["runs", "show", &id, "--json"]).data();
    assert_eq!(shown["chain"]["nodes"][0]["state"], "FAILED");
    assert_eq!(shown["chain"]["can_resume"], false);

    let (mut dev, deployed) = Dev::start(desk);
    assert_eq!(deployed["manifests"][0]["change"], "unchanged");
    let next = dev.wait_for("the next greeting", |event| ended(event, "greet", "completed"));
    assert!(next["run"].as_i64() > recovered["run"].as_i64());
    assert_eq!(dev.interrupt(), 0);
}

#[test]
fn dev_runs_retries_gives_up_and_continues_on_sqlite() {
    dev_runs_retries_gives_up_and_continues(&Desk::new());
}

#[tokio::test]
async fn dev_runs_retries_gives_up_and_continues_on_postgres() {
    let database = Database::migrated("cli_dev").await;
    dev_runs_retries_gives_up_and_continues(&Desk::on(database.url()));
    database.remove().await;
}

/// Files that change while it runs: each change is taken up or told, and what is wrong leaves what was there.
fn dev_takes_up_what_changes(desk: &Desk) {
    let greet = |every: &str| {
        format!(
            "[[manifest]]\nid = 'greet'\ntrain = 'hello'\nevery = '{every}'\ninput = {{ name = 'Ada' }}\n"
        )
    };
    let other =
        "[[manifest]]\nid = 'other'\ntrain = 'hello'\nevery = '1h'\ninput = { name = 'Eve' }\n";
    desk.guest("hello");
    desk.write("manifests.toml", &format!("{}{other}", greet("1h")));
    let (mut dev, _) = Dev::start(desk);
    for what in ["the first run's end", "the other's"] {
        dev.wait_for(what, |event| event["event"] == "run_ended");
    }

    desk.write("manifests.toml", &greet("2h"));
    let changed = dev.wait_for("a redeploy", |event| event["event"] == "redeployed");
    assert_eq!(changed["files"], serde_json::json!(["manifests.toml"]));
    assert_eq!(changed["stored"]["manifests"][0]["change"], "changed");
    assert_eq!(changed["stored"]["manifests"][0]["interval_seconds"], 7_200);
    let pruned = dev.wait_for("a removal", |event| event["event"] == "pruned");
    assert_eq!(pruned["deleted"], serde_json::json!(["other"]));

    desk.write("manifests.toml", "[[manifest]]\nid = 'greet'\ntrain = 'hello'\nevry = '3h'\n");
    let refused = dev.wait_for("a refusal", |event| event["event"] == "redeploy_failed");
    let error = refused["error"].as_str().unwrap();
    assert!(error.contains("manifests.toml:4: manifest 'greet': unknown key 'evry'"), "{error}");
    desk.write("manifests.toml", &greet("1s"));
    dev.wait_for("a greeting every second", |event| ended(event, "greet", "completed"));

    desk.write("hello.wasm", "no component");
    let refused = dev.wait_for("a refusal", |event| event["event"] == "redeploy_failed");
    assert_eq!(refused["files"], serde_json::json!(["hello.wasm"]));
    assert!(refused["error"].as_str().unwrap().contains("hello.wasm is refused:"));
    dev.wait_for("the old version's greeting", |event| ended(event, "greet", "completed"));
    desk.guest("flaky");
    desk.guest("hello");
    let added = dev.wait_for("a new component", |event| event["event"] == "redeployed");
    assert_eq!(added["stored"]["components"][0]["component"], "flaky");
    assert_eq!(dev.interrupt(), 0);
    assert!(desk.trax(&["trains"]).out.contains("flaky"));
}

#[test]
fn dev_takes_up_what_changes_on_sqlite() {
    dev_takes_up_what_changes(&Desk::new());
}

#[tokio::test]
async fn dev_takes_up_what_changes_on_postgres() {
    let database = Database::migrated("cli_dev_changes").await;
    dev_takes_up_what_changes(&Desk::on(database.url()));
    database.remove().await;
}

#[test]
fn a_second_dev_in_a_folder_is_refused() {
    let desk = Desk::new();
    desk.guest("hello");
    let (dev, _) = Dev::start(&desk);

    let second = desk.trax(&["dev"]);

    assert_eq!(second.refused(4), "another `trax dev` runs in .; end it first");
    assert_eq!(dev.interrupt(), 0);
}

#[test]
fn a_folder_that_cannot_run_is_told_before_anything_starts() {
    let desk = Desk::new();
    let empty = desk.trax(&["dev"]);
    assert!(empty.refused(3).starts_with("there is no component (*.wasm) in .; build one there"));
    assert!(desk.trax(&["dev", "gone"]).refused(3).starts_with("cannot read gone: "));

    desk.guest("hello");
    desk.write("manifests.toml", "[[manifest]]\nid = 'a'\ntrain = 'goodbye'\n");
    let unknown = desk.trax(&["dev"]);
    let expected = "./manifests.toml:3: manifest 'a': train: unknown train 'goodbye'; there is hello; deploy its";
    assert!(unknown.refused(2).starts_with(expected), "{}", unknown.err);

    let desk = Desk::new();
    desk.guest("hello");
    std::fs::create_dir(desk.path(".trax")).unwrap();
    desk.write(".trax/trax.db", &"no database ".repeat(500));
    assert!(
        desk.trax(&["dev"]).refused(5).contains("trax.db' is damaged or is no SQLite database")
    );
}
