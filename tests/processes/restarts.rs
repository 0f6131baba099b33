//! A database server that crashes and comes back while a host works on it.

use std::path::Path;

use rustix::process::Signal;
use serde_json::Value;

use crate::postgres::cluster;
use crate::processes::host::HostProcess;
use crate::processes::site;

/// How often the server crashes.
const CRASHES: usize = 5;

/// Runs that take a moment, so that some are always on their way.
const MANIFESTS: &str = "[scheduler]\npolling_interval = '1s'\n
    [[manifest]]\nid = 'a'\ntrain = 'probe-chain'\nevery = '1s'\n
    input = { acts = { Act1 = [{ spin_ms = 30 }], Act2 = [{ spin_ms = 30 }], Act3 = ['info'] } }\n
    [[manifest]]\nid = 'b'\ntrain = 'probe'\nevery = '1s'\n
    input = { acts = { Act = [{ ask = { keys = ['Lane'] } }, { spin_ms = 50 }] } }\n";

fn ended(line: &Value) -> bool {
    line["event"] == "run_ended"
}

/// Stops the server of a cluster as a crash would, and starts it again.
fn crash_and_restart(folder: &Path) {
    let mut pg_ctl = cluster::program("pg_ctl", folder);
    pg_ctl.args(["-w", "-s", "-m", "immediate", "-l"]).arg(folder.join("log"));
    cluster::succeed(pg_ctl.arg("-D").arg(folder.join("data")).arg("restart"));
}

/// A Postgres that crashes under load costs no run: whatever was on its way ends as if nothing had happened.
#[test]
fn a_server_that_crashes_costs_no_run() {
    let folder = std::env::temp_dir().join(format!("trax-crashes-{}", std::process::id()));
    site::on_a_server_of_its_own(&folder, |site| {
        let desk = site.desk(MANIFESTS);
        let mut host = HostProcess::start(&desk);
        for crash in 0..CRASHES {
            host.wait_for("that a run ends", ended);
            if crash % 2 == 0 {
                host.wait_for("that a run starts", |line| line["event"] == "run_started");
            }
            crash_and_restart(&folder);
        }
        let before = "SELECT CAST(COUNT(*) AS TEXT) FROM metadata WHERE train_state = 'completed'";
        let before: u32 = site.rows(before)[0].parse().unwrap();
        let more = format!(
            "SELECT 'few' FROM metadata WHERE train_state = 'completed' HAVING COUNT(*) < {}",
            before + 4
        );
        site.wait_for_rows(&more, &[]);
        host.signal(Signal::INT);
        assert_eq!(host.ended(), Some(0));
        let failed = "SELECT CAST(id AS TEXT), failure_exception, failure_reason FROM metadata
            WHERE train_state NOT IN ('completed', 'in_progress')";
        assert_eq!(site.rows(failed), [""; 0]);
        let repeated = "SELECT CAST(metadata_id AS TEXT), name FROM junction_run
            GROUP BY metadata_id, name HAVING COUNT(*) > 1";
        assert_eq!(site.rows(repeated), [""; 0]);
    });
}
