//! Runs that go from one host process to another, or to the same one started again.

use rustix::process::Signal;
use serde_json::Value;

use crate::processes::host::HostProcess;
use crate::processes::site::Site;

/// Answers nothing: whoever asks again fails.
const REFUSES: [&str; 2] = ["--answers", "{}"];
const RUNS: &str =
    "SELECT CAST(r.id AS TEXT), r.train_state, COALESCE(r.failure_exception, 'none'),
    (SELECT CAST(COUNT(*) AS TEXT) FROM metadata) FROM metadata r ORDER BY r.id";
const STEPS: &str = "SELECT name, state FROM junction_run ORDER BY metadata_id, position";
const DECISIONS: &str = "SELECT CAST(metadata_id AS TEXT), question_key FROM decision ORDER BY id";

/// A run that takes this long in each of its two junctions, and asks before the first.
fn manifests(shutdown_timeout: &str, first_ms: u32, second_ms: u32) -> String {
    format!(
        "[scheduler]\npolling_interval = '1s'\nshutdown_timeout = '{shutdown_timeout}'\n\
         [[manifest]]\nid = 'nightly'\ntrain = 'probe-routes'\nevery = '1h'\n\
         input = {{ acts = {{ GoLeft = [{{ spin_ms = {first_ms} }}], \
         Act = [{{ spin_ms = {second_ms} }}, 'info'] }} }}\n"
    )
}

fn stands_in(site: &Site, junction: &str) {
    site.wait_for_rows("SELECT currently_running_junction FROM metadata", &[junction]);
}

fn ended(event: &Value) -> bool {
    event["event"] == "run_ended"
}

/// What is left of a run that was handed over and is done: one run, its steps once each, its question asked once.
fn is_one_run(site: &Site) {
    assert_eq!(site.rows(RUNS), ["1 completed none 1"]);
    assert_eq!(site.rows(STEPS), ["Left completed", "GoLeft completed", "Act completed"]);
    assert_eq!(site.rows(DECISIONS), ["1 Lane"]);
    assert_eq!(site.rows("SELECT reason FROM dead_letter"), [""; 0]);
}

/// A run drained before its second junction continues on a host that runs beside the one that ends.
fn a_drained_run_continues_on_another_host(site: &Site) {
    let desks = [(); 2].map(|()| site.desk(&manifests("30s", 1_000, 1)));
    let mut first = HostProcess::start(&desks[0]);
    stands_in(site, "GoLeft");
    let mut second = HostProcess::start_with(&desks[1], &REFUSES);
    second.wait_for("what it deployed", |line| line["manifests"].is_array());

    first.signal(Signal::TERM);

    let parked = first.wait_for("that the run leaves", ended);
    assert_eq!(parked["ending"], "parked");
    assert_eq!(first.ended(), Some(0));
    let continued = second.wait_for("that it goes on", |line| line["event"] == "run_continued");
    assert_eq!(continued["run"], parked["run"]);
    let completed = second.wait_for("its end", ended);
    assert_eq!(completed["ending"], "completed");
    assert!(completed["output"].as_str().unwrap().contains(" attempt=1 "), "{completed}");
    second.signal(Signal::INT);
    assert_eq!(second.ended(), Some(0));
    is_one_run(site);
}

/// Ctrl-C hands over to whoever starts next, which may be the same host.
fn ctrl_c_drains_and_starting_again_continues(site: &Site) {
    let desk = site.desk(&manifests("30s", 1_000, 1));
    let first = HostProcess::start(&desk);
    stands_in(site, "GoLeft");
    first.signal(Signal::INT);
    assert_eq!(first.ended(), Some(0));
    let parked =
        "SELECT r.train_state, p.reason FROM metadata r JOIN parked_run p ON p.metadata_id = r.id";
    assert_eq!(site.rows(parked), ["in_progress hand_over"]);

    let mut again = HostProcess::start_with(&desk, &REFUSES);
    assert_eq!(again.wait_for("the end of the run", ended)["ending"], "completed");
    again.signal(Signal::INT);
    assert_eq!(again.ended(), Some(0));
    is_one_run(site);
}

/// A junction that takes longer than a host that ends will wait runs again elsewhere, from its start; nothing before
/// it does.
fn a_junction_that_is_stopped_runs_again_elsewhere(site: &Site) {
    let desks = [(); 2].map(|()| site.desk(&manifests("0s", 1, 2_000)));
    let first = HostProcess::start(&desks[0]);
    stands_in(site, "Act");
    first.signal(Signal::TERM);
    assert_eq!(first.ended(), Some(0));
    assert_eq!(site.rows(RUNS), ["1 in_progress none 1"]);

    let mut second = HostProcess::start_with(&desks[1], &REFUSES);
    let completed = second.wait_for("the end of the run", ended);
    assert_eq!(completed["ending"], "completed");
    assert!(completed["output"].as_str().unwrap().contains(" attempt=1 "), "{completed}");
    second.signal(Signal::TERM);
    assert_eq!(second.ended(), Some(0));
    is_one_run(site);
}

/// A second Ctrl-C ends a host at once; the run it had fails once, and its retry succeeds.
fn a_second_ctrl_c_leaves_the_run_to_the_next_host(site: &Site) {
    let manifests = manifests("30s", 3_000, 1);
    let quick =
        manifests.replace("[scheduler]", "[scheduler]\nhost_lease = '1s'\nretry_delay = '0s'");
    let desk = site.desk(&quick);
    let first = HostProcess::start(&desk);
    stands_in(site, "GoLeft");
    assert_eq!(first.interrupted_again_and_again(), Some(130));

    let desk = site.desk(&quick.replace("3000", "1"));
    let mut second = HostProcess::start(&desk);
    second.wait_for("the end of the run", |line| ended(line) && line["ending"] == "completed");
    second.signal(Signal::INT);
    assert_eq!(second.ended(), Some(0));
    assert_eq!(site.rows(RUNS), ["1 failed HostLost 2", "2 completed none 2"]);
}

process_cases!(
    a_drained_run_continues_on_another_host,
    ctrl_c_drains_and_starting_again_continues,
    a_junction_that_is_stopped_runs_again_elsewhere,
    a_second_ctrl_c_leaves_the_run_to_the_next_host,
);
