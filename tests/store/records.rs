//! What a run leaves behind: decisions, checkpoints, steps and log lines.

use std::time::Duration;

use trax::model::dispatch::DispatchPolicy;
use trax::model::failure::{Failure, FailureClass};
use trax::model::ids::{Claim, DecisionId};
use trax::store::checkpoints::{self, NewCheckpoint};
use trax::store::claim::{ClaimRequest, claim};
use trax::store::decisions::{
    self, Asking, NewDecision, has_acted_on, is_replayed, set_routes, set_shadows,
};
use trax::store::dispatch::{DispatchFailure, dispatch_failed};
use trax::store::junction_runs::{self, StepRow};
use trax::store::logs::{self, NewLine};
use trax::store::queue::NewEntry;
use trax::store::runs::{abandon_replay, complete, fail, release};
use trax::store::{JunctionRunKind, JunctionRunState, LogLevel, StoreError, tenants};

use super::world::{World, request};

/// A decision that is acted on.
pub(crate) fn decision(key: &str) -> NewDecision<'_> {
    NewDecision {
        branch_path: "",
        question_key: key,
        occurrence: 0,
        asked_by: "",
        fingerprint: "f",
        kind: "yes_no",
        question: "{}",
        answer: Some("{\"probability\":0.7}"),
        refused: None,
        model: None,
        decider: Some("rules"),
        is_replayed: false,
        state_hash: Some("s1:ab"),
    }
}

async fn record(w: &World, claim: Claim, new: &NewDecision<'_>) -> DecisionId {
    w.write(async |tx| decisions::record(tx, claim, new).await).await
}

/// D10: decisions come in the order they were made, one for each asking.
async fn decisions_are_kept_in_order_one_for_each_asking(w: World) {
    let host = w.host("one").await;
    let claim = w.run(&host).await;
    let first = record(&w, claim, &decision("Refund")).await;
    let second = record(&w, claim, &NewDecision { occurrence: 1, ..decision("Refund") }).await;
    let inside = record(&w, claim, &NewDecision { asked_by: "Pay#0", ..decision("Refund") }).await;
    let again =
        record(&w, claim, &NewDecision { answer: Some("other"), ..decision("Refund") }).await;
    w.write(async |tx| set_routes(tx, claim, first, "[{\"track\":\"Yes\"}]").await).await;
    let asking = Asking { branch_path: "", question_key: "Refund", occurrence: 0, asked_by: "" };
    w.write(async |tx| set_shadows(tx, claim, &asking, "[]").await).await;

    let all = w
        .read(async |tx| decisions::of_run(tx, w.tenant, claim.run, DecisionId(0), 10).await)
        .await;
    assert_eq!(again, first);
    assert_eq!(all.iter().map(|d| d.id).collect::<Vec<_>>(), [first, second, inside]);
    assert_eq!(all[0].answer.as_deref(), Some("{\"probability\":0.7}"));
    assert_eq!(
        (all[0].routes.as_deref(), all[0].shadows.as_deref()),
        (Some("[{\"track\":\"Yes\"}]"), Some("[]"))
    );
    assert_eq!((&all[1].shadows, &all[2].shadows), (&None, &None));
    let page = w.read(async |tx| decisions::of_run(tx, w.tenant, claim.run, first, 1).await).await;
    assert_eq!(page[0].id, second);
}

/// D4, D30: a refused answer is kept, and is nothing that a retry could replay.
async fn a_refused_answer_is_kept_and_not_replayed(w: World) {
    let host = w.host("one").await;
    let claim = w.run(&host).await;
    let refused =
        NewDecision { answer: None, refused: Some("no such option"), ..decision("Refund") };
    record(&w, claim, &refused).await;
    assert!(!w.read(async |tx| has_acted_on(tx, claim.run).await).await);

    record(&w, claim, &decision("Other")).await;
    assert!(w.read(async |tx| has_acted_on(tx, claim.run).await).await);
    let neither = NewDecision { answer: None, ..decision("Neither") };
    assert!(w.try_write(async |tx| decisions::record(tx, claim, &neither).await).await.is_err());
}

/// D29, R58: a run's answers are spoken for by a queued entry or a run that replays them, unless that abandoned it.
async fn answers_are_spoken_for_by_an_entry_or_a_run(w: World) {
    let host = w.host("one").await;
    let source = w.run(&host).await;
    w.write(async |tx| fail(tx, source, None, &Failure::transient("E", "e")).await).await;
    let spoken_for = async || w.read(async |tx| is_replayed(tx, source.run).await).await;

    assert!(!spoken_for().await);
    let new =
        NewEntry { replay_decisions_of: Some(source.run), ..NewEntry::new(w.tenant, "train") };
    w.enqueue(&new).await;
    assert!(spoken_for().await);
    let replay = w.claim(&host, 1).await.remove(0).claim();
    assert!(spoken_for().await);
    w.write(async |tx| abandon_replay(tx, replay).await).await;
    assert!(!spoken_for().await);
}

/// D9: attempts that share an external id record under a row each.
async fn attempts_record_apart(w: World) {
    let host = w.host("one").await;
    w.entry(None).await;
    let first = w.claim(&host, 1).await.remove(0);
    record(&w, first.claim(), &decision("Refund")).await;
    let failure = Failure::transient("Away", "e");
    let policy = DispatchPolicy::default();
    let failed =
        DispatchFailure { entry: first.entry, claim: first.claim(), failure: &failure, policy };
    w.write(async |tx| dispatch_failed(tx, &failed).await).await;
    w.sql("UPDATE work_queue SET scheduled_at = NULL").await.unwrap();
    let second = w.claim(&host, 1).await.remove(0);
    assert_eq!(second.external_id, first.external_id);
    record(&w, second.claim(), &decision("Refund")).await;

    let rows = w.rows("SELECT CAST(metadata_id AS TEXT) FROM decision ORDER BY id").await;
    assert_eq!(rows, [first.run.to_string(), second.run.to_string()]);
}

/// D28: an entry that fails before it starts keeps its link only while it may be followed.
async fn a_run_that_never_started_has_no_link_that_was_dropped(w: World) {
    let host = w.host("one").await;
    let source = w.run(&host).await;
    w.write(async |tx| fail(tx, source, None, &Failure::transient("E", "e")).await).await;
    let policy = DispatchPolicy { unknown_attempts_max: 1, ..DispatchPolicy::default() };
    for _ in 0..2 {
        let new = NewEntry {
            replay_decisions_of: Some(source.run),
            ..NewEntry::new(w.tenant, "nowhere")
        };
        w.enqueue(&new).await;
        let request = ClaimRequest { policy, ..request(w.tenant, &host, 1) };
        let claimed = w.write(async |tx| claim(tx, &request).await).await;
        assert_eq!(claimed.unknown.len(), 1);
    }
    let links = "SELECT train_state, CAST(replay_decisions_of AS TEXT) FROM metadata
        WHERE name = 'nowhere' ORDER BY id";
    assert_eq!(w.rows(links).await, ["failed 1", "failed -"]);
}

/// K6: one checkpoint per node, written again by a run that continues there, and gone when the run completes.
async fn checkpoints_are_one_per_node_until_the_run_completes(w: World) {
    let host = w.host("one").await;
    let claim = w.run(&host).await;
    let new = NewCheckpoint {
        node_id: "Checkpoint#0",
        branch_path: None,
        state_type: "Paid",
        state: "{\"n\":1}",
        tracks: "[]",
        chain_hash: "c",
        state_fingerprint: "s",
    };
    w.write(async |tx| checkpoints::record(tx, claim, &new).await).await;
    let newer = NewCheckpoint { state: "{\"n\":2}", ..new.clone() };
    w.write(async |tx| checkpoints::record(tx, claim, &newer).await).await;
    let other = NewCheckpoint { node_id: "Checkpoint#1", ..new };
    w.write(async |tx| checkpoints::record(tx, claim, &other).await).await;

    let kept = "SELECT node_id, state FROM checkpoint ORDER BY id";
    assert_eq!(w.rows(kept).await, [r#"Checkpoint#0 {"n":2}"#, r#"Checkpoint#1 {"n":1}"#]);
    let nodes =
        async || w.read(async |tx| checkpoints::nodes_of_run(tx, w.tenant, claim.run).await).await;
    assert_eq!(nodes().await, ["Checkpoint#0", "Checkpoint#1"]);
    w.write(async |tx| complete(tx, claim, "{}").await).await;
    assert!(nodes().await.is_empty());
}

async fn whoever_lost_the_claim_records_nothing(w: World) {
    let host = w.host("one").await;
    let claim = w.run(&host).await;
    let id = record(&w, claim, &decision("Refund")).await;
    w.write(async |tx| release(tx, claim).await).await;
    let checkpoint = NewCheckpoint {
        node_id: "Checkpoint#0",
        branch_path: None,
        state_type: "Paid",
        state: "{}",
        tracks: "[]",
        chain_hash: "c",
        state_fingerprint: "s",
    };
    let step = step(0);

    let lost = [
        w.try_write(async |tx| decisions::record(tx, claim, &decision("Late")).await.map(|_| ()))
            .await,
        w.try_write(async |tx| set_routes(tx, claim, id, "[]").await).await,
        w.try_write(async |tx| checkpoints::record(tx, claim, &checkpoint).await).await,
        w.try_write(async |tx| junction_runs::write(tx, claim, &[step]).await).await,
    ];

    for result in lost {
        assert!(
            matches!(result, Err(StoreError::LostClaim(run)) if run == claim.run),
            "{result:?}"
        );
    }
    let counts = "SELECT CAST((SELECT COUNT(*) FROM decision) AS TEXT), CAST((SELECT COUNT(*) FROM checkpoint) AS TEXT),
        CAST((SELECT COUNT(*) FROM junction_run) AS TEXT), (SELECT routes FROM decision)";
    assert_eq!(w.rows(counts).await, ["1 0 0 -"]);
}

pub(super) fn step(position: i32) -> StepRow {
    StepRow {
        position,
        kind: JunctionRunKind::Junction,
        name: "Pay".to_owned(),
        node_id: Some("Pay#0".to_owned()),
        branch_path: None,
        question_key: None,
        state: JunctionRunState::InProgress,
        started_before: Duration::from_secs(3),
        ended_before: None,
        failure: None,
    }
}

async fn steps_tell_what_the_run_did(w: World) {
    let host = w.host("one").await;
    let claim = w.run(&host).await;
    let now = w.advance(Duration::ZERO).await;
    let failed = StepRow {
        state: JunctionRunState::Failed,
        ended_before: Some(Duration::from_secs(1)),
        failure: Some((FailureClass::Transient, "Time\0out".to_owned())),
        ..step(0)
    };
    let routed = StepRow {
        kind: JunctionRunKind::Route,
        question_key: Some("Team".to_owned()),
        state: JunctionRunState::Completed,
        ended_before: Some(Duration::ZERO),
        ..step(1)
    };
    w.write(async |tx| junction_runs::write(tx, claim, &[]).await).await;
    w.write(async |tx| junction_runs::write(tx, claim, &[failed, routed]).await).await;

    let steps = w.read(async |tx| junction_runs::of_run(tx, w.tenant, claim.run).await).await;

    assert_eq!(
        (steps[0].state, steps[0].failure_class, steps[0].failure_exception.as_deref()),
        (JunctionRunState::Failed, Some(FailureClass::Transient), Some("Time\\u0000out"))
    );
    assert_eq!(now.since(steps[0].started_at), Duration::from_secs(3));
    assert_eq!(steps[0].ended_at.map(|at| now.since(at)), Some(Duration::from_secs(1)));
    assert_eq!(
        (steps[1].kind, steps[1].state, steps[1].question_key.as_deref()),
        (JunctionRunKind::Route, JunctionRunState::Completed, Some("Team"))
    );
    // The run continues at its first step.
    w.write(async |tx| junction_runs::write(tx, claim, &[step(0)]).await).await;
    let steps = w.read(async |tx| junction_runs::of_run(tx, w.tenant, claim.run).await).await;
    assert_eq!(
        (steps[0].state, steps[0].failure_class, steps[0].ended_at),
        (JunctionRunState::InProgress, None, None)
    );
}

async fn log_lines_keep_their_order_and_what_postgres_cannot_hold(w: World) {
    let host = w.host("one").await;
    let run = w.run(&host).await.run;
    let line = |message| NewLine { level: LogLevel::Warning, category: "Pay", message };
    w.write(async |tx| logs::append(tx, run, &[line("one"), line("\"two\" \0 \u{1f600}\n")]).await)
        .await;
    w.write(async |tx| logs::append(tx, run, &[line("three")]).await).await;
    w.write(async |tx| logs::append(tx, run, &[]).await).await;

    let lines = w.read(async |tx| logs::of_run(tx, w.tenant, run, 0, 10).await).await;
    let texts: Vec<_> = lines.iter().map(|line| line.message.as_str()).collect();
    assert_eq!(texts, ["one", "\"two\" \\u0000 \u{1f600}\n", "three"]);
    assert_eq!(lines[0].level, LogLevel::Warning);
    let page = w.read(async |tx| logs::of_run(tx, w.tenant, run, lines[0].id, 1).await).await;
    assert_eq!(page, lines[1..2]);
}

async fn no_tenant_sees_what_anothers_run_left(w: World) {
    let other = w.write(async |tx| tenants::add(tx, "acme").await).await;
    let host = w.host("one").await;
    let claim = w.run(&host).await;
    let run = claim.run;
    record(&w, claim, &decision("Refund")).await;
    w.write(async |tx| junction_runs::write(tx, claim, &[step(0)]).await).await;
    let line = NewLine { level: LogLevel::Error, category: "Pay", message: "m" };
    w.write(async |tx| logs::append(tx, run, &[line]).await).await;

    let mut tx = w.db.read().await.unwrap();
    assert!(decisions::of_run(&mut tx, other, run, DecisionId(0), 10).await.unwrap().is_empty());
    assert!(checkpoints::nodes_of_run(&mut tx, other, run).await.unwrap().is_empty());
    assert!(junction_runs::of_run(&mut tx, other, run).await.unwrap().is_empty());
    assert!(logs::of_run(&mut tx, other, run, 0, 10).await.unwrap().is_empty());
}

on_both!(
    decisions_are_kept_in_order_one_for_each_asking,
    a_refused_answer_is_kept_and_not_replayed,
    answers_are_spoken_for_by_an_entry_or_a_run,
    attempts_record_apart,
    a_run_that_never_started_has_no_link_that_was_dropped,
    checkpoints_are_one_per_node_until_the_run_completes,
    whoever_lost_the_claim_records_nothing,
    steps_tell_what_the_run_did,
    log_lines_keep_their_order_and_what_postgres_cannot_hold,
    no_tenant_sees_what_anothers_run_left,
);
