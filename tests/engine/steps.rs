//! What is shown of the steps of a run, and what that costs.

use std::sync::Arc;
use std::time::Duration;

use trax::store::{Faults, runs};

use crate::engine::world::World;

const STEPS: &str =
    "SELECT CAST(position AS TEXT), kind, name, state FROM junction_run ORDER BY position";

/// The steps of a short run, its lines and its tracks are written with its end: it costs no commit but those of its
/// claim and its end.
async fn a_short_run_is_written_with_its_end(w: Arc<World>) {
    w.deploy("probe").await;
    let faults = Faults::none();
    let db = w.faulty(&faults).await;
    let mut host = w.host_on("one", db, |config| config.step_delay = Duration::from_hours(1)).await;
    let input = r#"{"acts":{"Act":[{"log":{"level":"info","message":"done"}}]}}"#;
    w.manifest("nightly", "probe", input, 0).await;
    host.manage().await;
    let before = faults.commits();

    host.dispatch().await;
    host.workers.idle().await;

    assert_eq!(w.states().await, "completed");
    assert_eq!(faults.commits() - before, 2);
    let steps = w.store.rows(STEPS).await;
    assert_eq!(steps[0], "0 junction Act completed");
    assert!(steps.iter().all(|step| step.ends_with(" completed")), "{steps:?}");
    assert_eq!(w.store.rows("SELECT message FROM log").await, ["done"]);
}

/// A junction that takes long is shown while it runs.
async fn a_junction_that_takes_long_is_shown(w: Arc<World>) {
    w.deploy("probe").await;
    let mut host = w.host_with("one", |config| config.step_delay = Duration::from_millis(1)).await;
    w.manifest("nightly", "probe", r#"{"acts":{"Act":["loop_forever"]}}"#, 0).await;
    host.manage().await;
    host.dispatch().await;

    let running = "SELECT currently_running_junction FROM metadata";
    while w.store.rows(running).await != ["Act"] {
        tokio::task::yield_now().await;
    }

    assert_eq!(w.store.rows(STEPS).await, ["0 junction Act in_progress"]);
    let (run, tenant) = (w.last_run().await, w.store.tenant);
    w.store.write(async |tx| runs::request_cancel(tx, tenant, run).await).await;
    assert_eq!(host.look_for_cancellations().await, 1);
    host.workers.idle().await;
    assert_eq!(w.states().await, "cancelled");
}

engine_cases!(a_short_run_is_written_with_its_end, a_junction_that_takes_long_is_shown);
