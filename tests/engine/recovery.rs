//! What is tried again at all, and whether it waits.

use std::sync::Arc;

use trax::model::ids::ManifestId;
use trax::store::manifests::Setting;
use trax::store::queue::NewEntry;
use trax::store::{runs, tenants};

use crate::engine::world::{TestHost, World, queued};

const FAILS: &str = r#"{"acts":{"Act":[{"fail":{"name":"Lost","message":"no route"}}]}}"#;
const WORKS: &str = "{}";
const WAITS: &str = r#"{"acts":{"Act":["loop_until_cancelled",{"fail":{}}]}}"#;
const HOUR: u64 = 3_600;

/// How a run is made to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Failed,
    Completed,
    Cancelled,
}

impl World {
    /// Queues the next run of a manifest, lets any delay pass, and brings that run to this end.
    async fn one_run(&self, host: &mut TestHost, manifest: &str, end: End) {
        let input = match end {
            End::Failed => FAILS,
            End::Completed => WORKS,
            End::Cancelled => WAITS,
        };
        self.set_input(manifest, input).await;
        host.manage().await;
        self.advance(HOUR).await;
        assert_eq!(host.dispatch().await, 1, "{manifest}: a run starts");
        if end == End::Cancelled {
            let (run, tenant) = (self.last_run().await, self.store.tenant);
            self.store.write(async |tx| runs::request_cancel(tx, tenant, run).await).await;
            host.workers.cancel(run);
        }
        host.workers.idle().await;
        self.advance(60).await;
    }

    /// A manifest that runs every minute, alone: those before it are disabled.
    async fn alone(&self, name: &str, window: Setting<i32>) -> ManifestId {
        let others = "UPDATE manifest SET is_enabled = FALSE, next_due_at = NULL";
        self.store.sql(others).await.unwrap();
        self.stated(name, "probe", WORKS, 9, window, 60).await
    }

    /// The delay of what is queued, in seconds; `-`: none is stored.
    async fn stored_delay(&self) -> Vec<String> {
        let scheduled = "SELECT CAST(scheduled_at AS TEXT) FROM work_queue WHERE status = 'queued'";
        let stored = self.store.rows(scheduled).await;
        stored.into_iter().map(|at| if at == "-" { at } else { "some".to_owned() }).collect()
    }
}

/// R3: work that is to be recovered is a manifest's; the same work queued by itself is not run again.
async fn recovery_is_for_manifests(w: Arc<World>) {
    w.deploy("probe").await;
    let mut host = w.host("one").await;
    let input = r#"{"acts":{"Act":[{"only_up_to_attempt":2},{"fail":{"name":"Lost"}}]}}"#;
    w.stated("recovers", "probe", input, 3, Setting::Keep, 31_536_000).await;
    let new = NewEntry { input: Some(input), ..NewEntry::new(w.store.tenant, "probe") };
    w.store.enqueue(&new).await;

    for _ in 0..8 {
        host.pass().await;
        w.advance(HOUR).await;
    }

    let of = "SELECT CASE WHEN manifest_id IS NULL THEN 'alone' ELSE 'manifest' END, train_state
        FROM metadata ORDER BY 1, id";
    let expected = ["alone failed", "manifest failed", "manifest failed", "manifest completed"];
    assert_eq!(w.store.rows(of).await, expected);
}

/// R12, R20: after a success the next occurrence is queued without a time to wait for, whatever failed before.
async fn a_success_stops_the_delay(w: Arc<World>) {
    w.deploy("probe").await;
    let mut host = w.host("one").await;
    w.alone("nightly", Setting::Keep).await;
    for end in [End::Failed, End::Failed, End::Failed] {
        w.one_run(&mut host, "nightly", end).await;
    }
    w.set_input("nightly", WORKS).await;
    assert_eq!(queued(&host.manage().await), ["retry 3 +1200"]);
    assert_eq!(w.stored_delay().await, ["some"]);
    w.one_run(&mut host, "nightly", End::Completed).await;

    assert_eq!(queued(&host.manage().await), ["run"]);
    assert_eq!(w.stored_delay().await, ["-"]);
}

/// R16, R13: a delay applies after a failure that counts, and after nothing else.
async fn a_delay_follows_a_counted_failure_only(w: Arc<World>) {
    w.deploy("probe").await;
    let mut host = w.host("one").await;
    let cases: [(&str, Setting<i32>, &[End], &str); 7] = [
        ("never run", Setting::Keep, &[], "run"),
        ("failed", Setting::Keep, &[End::Failed], "retry 1 +300"),
        ("failed and forgotten", Setting::Set(30), &[End::Failed], "run"),
        ("worked", Setting::Keep, &[End::Completed], "run"),
        ("cancelled", Setting::Keep, &[End::Cancelled], "run"),
        ("failed and worked", Setting::Keep, &[End::Failed, End::Completed], "run"),
        ("failed and cancelled", Setting::Keep, &[End::Failed, End::Cancelled], "run"),
    ];
    for (name, window, ends, expected) in cases {
        w.alone(name, window).await;
        for end in ends {
            w.one_run(&mut host, name, *end).await;
        }
        assert_eq!(queued(&host.manage().await), [expected], "{name}");
        let stored = if expected == "run" { "-" } else { "some" };
        assert_eq!(w.stored_delay().await, [stored], "{name}");
        // Nothing of it is left for the next case.
        w.advance(HOUR).await;
        w.one_run(&mut host, name, End::Completed).await;
    }
}

/// R14: a time-out of the guest's own is a failure: transient, counted, and tried again.
async fn a_guests_own_time_out_is_a_failure(w: Arc<World>) {
    w.deploy("probe").await;
    let mut host = w.host("one").await;
    let input = r#"{"acts":{"Act":[{"fail":{"name":"HttpTimeout","message":"no answer"}}]}}"#;
    w.manifest("nightly", "probe", input, 3).await;

    host.pass().await;

    let run = "SELECT train_state, failure_class, failure_exception, CAST(cancel_requested AS TEXT)
        FROM metadata";
    let is_cancelled = if w.store.db.is_postgres() { "false" } else { "0" };
    let expected = format!("failed transient HttpTimeout {is_cancelled}");
    assert_eq!(w.store.rows(run).await, [expected]);
    assert_eq!(queued(&host.manage().await), ["retry 1 +300"]);
}

async fn a_run_knows_its_tenant(w: Arc<World>) {
    let acme = w.store.write(async |tx| tenants::add(tx, "acme").await).await;
    w.of_tenant(acme).deploy("probe").await;
    let mut host = w.host("one").await;
    let input = r#"{"acts":{"Act":["info"]}}"#;
    w.store.enqueue(&NewEntry { input: Some(input), ..NewEntry::new(acme, "probe") }).await;

    host.pass().await;

    let output = w.store.rows("SELECT output FROM metadata_payload").await.remove(0);
    assert!(output.contains("info: tenant=acme train=probe"), "{output}");
}

engine_cases!(
    a_run_knows_its_tenant,
    recovery_is_for_manifests,
    a_success_stops_the_delay,
    a_delay_follows_a_counted_failure_only,
    a_guests_own_time_out_is_a_failure,
);
