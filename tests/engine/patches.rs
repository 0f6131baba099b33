//! Changes of single settings by operators.

use std::sync::Arc;

use trax::operations::groups;
use trax::operations::outcome::Outcome;
use trax::operations::patches::{self, GroupPatch, ManifestPatch};

use crate::engine::world::{World, queued};

const LOOPS: &str = r#"{"acts":{"Act":["loop_until_cancelled",{"fail":{}}]}}"#;
const WORKS: &str = "{}";

impl World {
    async fn patch(&self, patch: ManifestPatch) -> Outcome {
        patches::manifest(&self.store.db, self.store.tenant, "nightly", &patch).await.unwrap()
    }

    async fn patch_group(&self, patch: GroupPatch) -> Outcome {
        patches::group(&self.store.db, self.store.tenant, "nightly", patch).await.unwrap()
    }
}

/// A patch changes what it states and nothing else, and when the manifest is due follows; one that cannot be changes
/// nothing.
async fn a_manifest_is_patched(w: Arc<World>) {
    w.deploy("probe").await;
    let mut host = w.host("one").await;
    let none = ManifestPatch::default();
    assert_eq!(w.patch(none.clone()).await.message, "Manifest 'nightly' not found.");
    w.manifest("nightly", "probe", WORKS, 3).await;
    host.pass().await;
    let columns = "SELECT CAST(max_retries AS TEXT), CAST(priority AS TEXT), schedule_type,
        CAST(timeout_seconds AS TEXT), CAST(interval_seconds AS TEXT), cron_expression FROM manifest";

    let wrong = [
        (
            ManifestPatch { max_retries: Some(-1), ..none.clone() },
            "maxRetries may not be negative.",
        ),
        (
            ManifestPatch { priority: Some(32), ..none.clone() },
            "priority must be between 0 and 31.",
        ),
        (
            ManifestPatch { timeout_seconds: Some(Some(0)), ..none.clone() },
            "timeoutSeconds must be greater than 0; set clearTimeout to remove the timeout.",
        ),
        (
            ManifestPatch { interval_seconds: Some(0), ..none.clone() },
            "intervalSeconds must be greater than 0.",
        ),
    ];
    for (patch, why) in wrong {
        let patch = ManifestPatch { max_retries: patch.max_retries.or(Some(9)), ..patch };
        let outcome = w.patch(patch).await;
        let told = format!("Manifest 'nightly' was not updated: {why}");
        assert_eq!((outcome.is_done, outcome.message), (false, told));
    }
    let never = ManifestPatch { cron_expression: Some("0 0 30 2 *".to_owned()), ..none.clone() };
    assert!(!w.patch(never).await.is_done);
    assert_eq!(w.store.rows(columns).await, ["3 0 interval - 3600 -"]);

    let patch = ManifestPatch {
        max_retries: Some(0),
        timeout_seconds: Some(Some(60)),
        interval_seconds: Some(600),
        ..none.clone()
    };
    assert_eq!(w.patch(patch).await.message, "Manifest updated.");
    assert_eq!(w.store.rows(columns).await, ["0 0 interval 60 600 -"]);
    w.advance(599).await;
    assert!(queued(&host.manage().await).is_empty());
    w.advance(1).await;
    assert_eq!(queued(&host.pass().await), ["run"]);
    let patch = ManifestPatch {
        timeout_seconds: Some(None),
        cron_expression: Some("30 * * * *".to_owned()),
        ..none
    };
    assert!(w.patch(patch).await.is_done);
    assert_eq!(w.store.rows(columns).await, ["0 0 cron - - 30 * * * *"]);
    w.advance(1_199).await;
    assert!(queued(&host.manage().await).is_empty());
    w.advance(1).await;
    assert_eq!(queued(&host.pass().await), ["run"]);
}

/// A group is patched the same way, and told how many settings changed.
async fn a_group_is_patched(w: Arc<World>) {
    let none = GroupPatch::default();
    assert_eq!(w.patch_group(none).await.message, "Manifest group 'nightly' not found.");
    w.manifest("nightly", "probe", WORKS, 3).await;
    let wrong = GroupPatch { priority: Some(-1), max_active_jobs: Some(Some(0)), ..none };
    assert_eq!(
        w.patch_group(wrong).await.message,
        "Manifest group 'nightly' not updated: Priority must be between 0 and 31. MaxActiveJobs must be at least 1; \
         clear it to remove the limit."
    );
    let off =
        GroupPatch { priority: Some(7), max_active_jobs: Some(Some(2)), is_enabled: Some(false) };
    assert_eq!(w.patch_group(off).await.message, "Manifest group 'nightly': 3 field(s) updated.");
    assert_eq!(w.patch_group(off).await.message, "Manifest group 'nightly': no changes.");
    let due = "SELECT CAST(next_due_at AS TEXT) FROM manifest";
    assert_eq!(w.store.rows(due).await, ["-"]);
    let on = GroupPatch { max_active_jobs: Some(None), is_enabled: Some(true), ..none };
    assert_eq!(w.patch_group(on).await.message, "Manifest group 'nightly': 2 field(s) updated.");
    assert_ne!(w.store.rows(due).await, ["-"]);
    let columns =
        "SELECT CAST(max_active_jobs AS TEXT), CAST(priority AS TEXT) FROM manifest_group";
    assert_eq!(w.store.rows(columns).await, ["- 7"]);
}

/// Cancelling groups asks the active runs of all their members to end.
async fn groups_are_cancelled(w: Arc<World>) {
    w.deploy("probe").await;
    let mut host = w.host("one").await;
    for name in ["a", "b", "c"] {
        w.manifest(name, "probe", LOOPS, 3).await;
    }
    host.manage().await;
    assert_eq!(host.dispatch().await, 3);
    let (db, tenant) = (&w.store.db, w.store.tenant);
    let named = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();

    let missing = groups::cancel(db, tenant, &named(&["a", "z"])).await.unwrap();
    assert_eq!(missing.message, "Manifest group 'z' not found.");
    let done = groups::cancel(db, tenant, &named(&["a", "b"])).await.unwrap();
    assert_eq!(
        done.message,
        "Cancellation requested for 2 execution(s) across 2 of 2 manifest group(s)."
    );
    // A run that comes to a boundary first sees it by itself.
    assert!(host.look_for_cancellations().await <= 2);
    let cancelled = "SELECT m.external_id FROM metadata r JOIN manifest m ON m.id = r.manifest_id
        WHERE r.cancel_requested ORDER BY m.external_id";
    assert_eq!(w.store.rows(cancelled).await, ["a", "b"]);
    host.cancel_all(&w).await;
}

engine_cases!(a_manifest_is_patched, a_group_is_patched, groups_are_cancelled);
