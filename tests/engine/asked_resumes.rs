//! Resumes and requeues that somebody asks for, and what each starts from.

use std::sync::Arc;

use trax::model::ids::{ManifestId, RunId};
use trax::operations::{dead_letters, requeue, resume};

use crate::engine::resumes::{ANSWERS, failed_after_its_checkpoint, fails_in, host, links, ran};
use crate::engine::world::{World, queued};

/// The outcome of an operator's resume, as text.
async fn asked(w: &World, run: i64, at: Option<&str>) -> String {
    let done = resume::execution(&w.store.db, w.store.tenant, RunId(run), at).await.unwrap();
    done.message
}

/// K21, K22: an operator's resume is refused for the first reason there is, word for word, or queued.
async fn an_operator_resumes_what_can_be_resumed(w: Arc<World>) {
    w.deploy("probe").await;
    let mut one = host(&w, "one", ANSWERS).await;
    failed_after_its_checkpoint(&w, &mut one, 1).await;
    w.store.sql("UPDATE manifest SET is_enabled = FALSE, next_due_at = NULL").await.unwrap();

    assert_eq!(asked(&w, 9, None).await, "Execution 9 not found.");
    for (change, expected) in [
        (
            "train_state = 'completed'",
            "Execution 1 is Completed; only a failed or cancelled run can be resumed.",
        ),
        (
            "train_state = 'in_progress', end_time = NULL",
            "Execution 1 is InProgress; only a failed or cancelled run can be resumed.",
        ),
        (
            "invoking_machine = 'orders'",
            "Execution 1 was started by a step of the state machine 'orders', and only that step receives its outcome, \
             so it cannot be resumed. The machine retries it by entering the step again.",
        ),
        ("name = 'gone'", "Train gone is no longer registered, so execution 1 cannot be resumed."),
    ] {
        let end = "SELECT CAST(end_time AS TEXT) FROM metadata";
        let end = w.store.rows(end).await.remove(0);
        w.store.sql(&format!("UPDATE metadata SET {change}")).await.unwrap();
        assert_eq!(asked(&w, 1, None).await, expected);
        let undo = format!(
            "UPDATE metadata SET train_state = 'failed', invoking_machine = NULL, name = 'probe-routes', end_time = '{end}'"
        );
        w.store.sql(&undo).await.unwrap();
    }
    assert_eq!(asked(&w, 1, Some("Act#7")).await, "The chain declares no step 'Act#7'.");
    assert_eq!(
        asked(&w, 1, Some("Switch<Lane>#0")).await,
        "No checkpoint the run wrote comes before 'Switch<Lane>#0', so it can only run again from the top."
    );
    assert_eq!(asked(&w, 1, Some("Act#0")).await, "Work queue entry 2 created.");
    assert_eq!(
        asked(&w, 1, None).await,
        "A resume of execution 1 is already queued (WorkQueue 2); a run is resumed once at a time. Nothing was queued."
    );
    let entry = "SELECT CAST(resume_from AS TEXT), resume_at, CAST(replay_decisions_of AS TEXT),
        CAST(manifest_id AS TEXT), CAST(priority AS TEXT) FROM work_queue WHERE status = 'queued'";
    assert_eq!(w.store.rows(entry).await, ["1 Act#0 1 - 0"]);
    one.dispatch().await;
    one.workers.idle().await;
    assert_eq!(links(&w).await, ["1 failed - - -", "2 failed 1 Act#0 1"]);
    assert_eq!(ran(&w).await, ["1 Act#0", "1 Switch<Lane>#0/Left/GoLeft#0", "2 Act#0"]);
}

/// R101, R102: of an operator's resume and a retry of the same run one carries the resume; an operator that comes
/// second is refused, and a retry that comes second starts at the top.
async fn one_of_an_operator_and_a_retry_resumes(w: Arc<World>) {
    w.deploy("probe").await;
    let mut one = host(&w, "one", ANSWERS).await;
    failed_after_its_checkpoint(&w, &mut one, 1).await;
    assert_eq!(asked(&w, 1, None).await, "Work queue entry 2 created.");
    assert_eq!(queued(&one.manage().await), ["retry 1 +300"]);
    let entries = "SELECT CAST(resume_from AS TEXT) FROM work_queue
        WHERE status = 'queued' ORDER BY id";
    assert_eq!(w.store.rows(entries).await, ["1", "-"]);

    w.store.sql("DELETE FROM work_queue WHERE status = 'queued'").await.unwrap();
    w.settle_due(ManifestId(1)).await;
    let operator = async {
        let db = w.store.db.clone();
        let tenant = w.store.tenant;
        tokio::spawn(async move { resume::execution(&db, tenant, RunId(1), None).await })
            .await
            .unwrap()
            .unwrap()
    };
    let (outcome, _) = tokio::join!(operator, one.manage());
    let carriers =
        "SELECT CASE WHEN manifest_id IS NULL THEN 'operator' ELSE 'retry' END FROM work_queue
        WHERE status = 'queued' AND resume_from = 1";
    let carriers = w.store.rows(carriers).await;
    assert_eq!(carriers.len(), 1);
    assert_eq!(outcome.is_done, carriers == ["operator"]);
    if !outcome.is_done {
        assert!(
            outcome.message.starts_with("A resume of execution 1 is already queued"),
            "{outcome:?}"
        );
        assert!(outcome.message.ends_with("a run is resumed once at a time. Nothing was queued."));
    }
}

/// R103: a requeue of an execution starts at the top, whatever it stored.
async fn a_requeue_starts_at_the_top(w: Arc<World>) {
    w.deploy("probe").await;
    let mut one = host(&w, "one", ANSWERS).await;
    failed_after_its_checkpoint(&w, &mut one, 1).await;
    requeue::execution(&w.store.db, w.store.tenant, RunId(1), false).await.unwrap();
    let link = "SELECT COALESCE(CAST(resume_from AS TEXT), 'none') FROM work_queue WHERE status = 'queued'";
    assert_eq!(w.store.rows(link).await, ["none"]);
}

/// R91, K20: a requeue of a dead letter resumes, also one that asks afresh.
async fn a_requeued_dead_letter_resumes(w: Arc<World>) {
    w.deploy("probe").await;
    let mut one = host(&w, "one", ANSWERS).await;
    w.manifest("nightly", "probe-routes", &fails_in("Act", 2), 0).await;
    one.pass().await;
    for (asks_afresh, replays) in [(true, "-"), (false, "2")] {
        assert_eq!(queued(&one.manage().await), ["dead letter"]);
        let tenant = w.store.tenant;
        let scope = dead_letters::Scope::All;
        let go_on = |_| std::ops::ControlFlow::Continue(());
        dead_letters::requeue_all(&w.store.db, tenant, scope, asks_afresh, go_on).await.unwrap();
        let link =
            "SELECT CAST(resume_from AS TEXT), CAST(replay_decisions_of AS TEXT) FROM work_queue
            WHERE status = 'queued'";
        let run = w.last_run().await;
        // The second run was asked nothing, so it has nothing to replay.
        let replays = if run.0 == 2 { "-" } else { replays };
        assert_eq!(w.store.rows(link).await, [format!("{run} {replays}")]);
        w.advance(1).await;
        one.dispatch().await;
        one.workers.idle().await;
    }
    assert_eq!(w.states().await, "failed failed completed");
    assert_eq!(ran(&w).await, ["1 Act#0", "1 Switch<Lane>#0/Left/GoLeft#0", "2 Act#0", "3 Act#0"]);
}

engine_cases!(
    an_operator_resumes_what_can_be_resumed,
    one_of_an_operator_and_a_retry_resumes,
    a_requeue_starts_at_the_top,
    a_requeued_dead_letter_resumes,
);
