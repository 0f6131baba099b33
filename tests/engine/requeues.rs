//! Replays that somebody asked for: dead letters and executions that are requeued, retries that are triggered, and
//! manifests that opt out.

use std::ops::ControlFlow;
use std::sync::Arc;

use trax::model::ids::{DeadLetterId, EntryId, RunId};
use trax::operations::dead_letters::{self, Scope};
use trax::operations::outcome::Outcome;
use trax::operations::triggers::{self, Trigger};
use trax::operations::{manifests, requeue};
use trax::store::queue::{self, NewEntry, When};

use crate::engine::replay::{LEFT, REFUSES, RIGHT};
use crate::engine::world::{TestHost, World, queued};

/// Fails after the decision, whoever runs it, and works from the second attempt on.
const FAILS_ONCE: &str = r#"{"acts":{"Act":[{"only_up_to_attempt":1},{"fail":{"name":"Lost"}}]}}"#;
const HOUR: u64 = 3_600;
const SPENT: &str = "the decisions they would have replayed are already replayed by another run or queued entry, and \
    are replayed once.";

impl World {
    /// A manifest whose only run has decided and failed, and its dead letter.
    async fn dead_lettered(&self, name: &str) -> TestHost {
        self.deploy("probe").await;
        let mut host = self.answering(&format!("asks-{name}"), LEFT).await;
        self.manifest(name, "probe-replays", FAILS_ONCE, 0).await;
        host.pass().await;
        assert_eq!(queued(&host.manage().await), ["dead letter"]);
        self.advance(HOUR).await;
        host
    }

    /// The links of all queued entries.
    async fn links(&self) -> Vec<String> {
        let sql = "SELECT CAST(replay_decisions_of AS TEXT) FROM work_queue WHERE status = 'queued' ORDER BY id";
        self.store.rows(sql).await
    }

    async fn requeued(&self, run: i64, asks_afresh: bool) -> Outcome {
        requeue::execution(&self.store.db, self.store.tenant, RunId(run), asks_afresh)
            .await
            .unwrap()
    }

    async fn requeue_letter(&self, asks_afresh: bool) -> Outcome {
        let (db, tenant) = (&self.store.db, self.store.tenant);
        dead_letters::requeue(db, tenant, DeadLetterId(1), asks_afresh).await.unwrap()
    }

    /// An entry of no manifest that replays a run.
    async fn replaying(&self, run: i64) -> EntryId {
        let new = NewEntry {
            input: Some("{}"),
            replay_decisions_of: Some(RunId(run)),
            when: When::After(std::time::Duration::from_hours(99)),
            ..NewEntry::new(self.store.tenant, "probe-replays")
        };
        self.store.enqueue(&new).await
    }
}

/// R35, L4, D21: a requeued dead letter replays what the failed run decided.
async fn a_requeued_dead_letter_replays(w: Arc<World>) {
    w.dead_lettered("nightly").await;
    let done = w.requeue_letter(false).await;
    assert_eq!(done.message, "Dead letter requeued");
    assert_eq!(w.links().await, ["1"]);

    let mut refusing = w.answering("refusing", REFUSES).await;
    refusing.pass().await;

    assert_eq!(w.replays().await, ["failed - -", "completed 1 -"]);
    assert_eq!(w.decided().await, ["1 Lane answers", "2 Lane replayed"]);
}

/// R79, R80, R118: a dead letter that is requeued to ask afresh links nothing, one by one, many or all.
async fn a_dead_letter_can_be_requeued_to_ask_afresh(w: Arc<World>) {
    for way in 0..3 {
        w.dead_lettered(&format!("m{way}")).await;
        let (db, tenant) = (&w.store.db, w.store.tenant);
        let letter = DeadLetterId(way + 1);
        let done = match way {
            0 => dead_letters::requeue(db, tenant, letter, true).await,
            1 => dead_letters::requeue_batch(db, tenant, &[letter], true).await,
            _ => {
                let all = |_| ControlFlow::Continue(());
                dead_letters::requeue_all(db, tenant, Scope::All, true, all).await
            }
        };
        assert!(done.unwrap().is_done);
        assert_eq!(w.links().await, ["-"], "{way}");
        w.answering(&format!("right-{way}"), RIGHT).await.pass().await;
        w.store.sql("UPDATE manifest SET is_enabled = FALSE, next_due_at = NULL").await.unwrap();
    }
    let asked = w.decided().await;
    assert!(asked.iter().all(|row| row.ends_with("answers")) && asked.len() == 6, "{asked:?}");
}

/// R89, L8: a requeue of a dead letter whose decisions are spoken for asks afresh and says so: one, many, all.
async fn a_requeue_that_comes_second_asks_afresh(w: Arc<World>) {
    let base = ["Dead letter requeued", "1 dead letter(s) requeued.", "1 dead letter(s) requeued."];
    for (way, base) in (0..).zip(base) {
        w.dead_lettered(&format!("m{way}")).await;
        let failed = w.last_run().await.0;
        let entry = w.replaying(failed).await;
        let (db, tenant) = (&w.store.db, w.store.tenant);
        let letter = DeadLetterId(way + 1);
        let done = match way {
            0 => dead_letters::requeue(db, tenant, letter, false).await,
            1 => dead_letters::requeue_batch(db, tenant, &[letter], false).await,
            _ => {
                let all = |_| ControlFlow::Continue(());
                dead_letters::requeue_all(db, tenant, Scope::All, false, all).await
            }
        };
        let expected = format!("{base} 1 ask their deciders afresh: {SPENT}");
        assert_eq!(done.unwrap().message, expected);
        w.store.write(async |tx| queue::cancel(tx, tenant, entry).await).await;
        assert_eq!(w.links().await, ["-"], "{way}");
        w.answering(&format!("right-{way}"), RIGHT).await.pass().await;
        w.store.sql("UPDATE manifest SET is_enabled = FALSE, next_due_at = NULL").await.unwrap();
    }
}

/// R38, R39: a dead letter whose failure slid out of the window is requeued as a fresh run.
async fn a_failure_out_of_the_window_is_not_replayed(w: Arc<World>) {
    w.dead_lettered("nightly").await;
    w.advance(24 * HOUR).await;
    let done = w.requeue_letter(false).await;
    assert_eq!(done.message, "Dead letter requeued");
    assert_eq!(w.links().await, ["-"]);
}

/// R39: an acknowledged failure is not retried: the next occurrence asks afresh.
async fn an_acknowledged_failure_is_not_replayed(w: Arc<World>) {
    let mut host = w.dead_lettered("nightly").await;
    let (db, tenant) = (&w.store.db, w.store.tenant);
    dead_letters::acknowledge(db, tenant, DeadLetterId(1), None).await.unwrap();
    w.advance(1).await;
    assert_eq!(queued(&host.manage().await), ["run"]);
    assert_eq!(w.links().await, ["-"]);
}

/// R47: a dead letter of a run that itself replayed asks afresh.
async fn a_requeue_after_a_failed_replay_asks_afresh(w: Arc<World>) {
    w.deploy("probe").await;
    let fails = r#"{"acts":{"Act":[{"fail":{"name":"Lost"}}]}}"#;
    let mut host = w.answering("left", LEFT).await;
    w.manifest("nightly", "probe-replays", fails, 1).await;
    host.pass().await;
    host.manage().await;
    w.advance(300).await;
    host.pass().await;
    host.manage().await;
    assert_eq!(w.replays().await, ["failed - -", "failed 1 -"]);

    assert_eq!(w.requeue_letter(false).await.message, "Dead letter requeued");
    assert_eq!(w.links().await, ["-"]);
}

/// D30, D32, R103: an execution is requeued on its own input, from the top, for no manifest, and replays itself.
async fn a_requeued_execution_replays_itself(w: Arc<World>) {
    w.dead_lettered("nightly").await;
    w.set_input("nightly", "{}").await;

    let done = w.requeued(1, false).await;

    let entry = done.id.unwrap();
    assert_eq!((done.is_done, done.message), (true, format!("Work queue entry {entry} created.")));
    let made = "SELECT input, CAST(replay_decisions_of AS TEXT), CAST(manifest_id AS TEXT), CAST(scheduled_at AS TEXT),
        CAST(resume_from AS TEXT) FROM work_queue WHERE status = 'queued'";
    let input = r#"{"acts":{"Act":[{"only_up_to_attempt":1},{"fail":{"name":"Lost"}}]}}"#;
    assert_eq!(w.store.rows(made).await, [format!("{input} 1 - - -")]);
    let mut refusing = w.answering("refusing", REFUSES).await;
    refusing.dispatch().await;
    refusing.workers.idle().await;
    assert_eq!(w.decided().await, ["1 Lane answers", "2 Lane replayed"]);
    let occurrences = w.store.rows("SELECT DISTINCT occurrence_id FROM metadata").await;
    assert_eq!(occurrences.len(), 1);
}

/// R79, R80, D30: it asks afresh when it is told to, and when there is nothing to replay.
async fn a_requeued_execution_can_ask_afresh(w: Arc<World>) {
    w.dead_lettered("nightly").await;
    let done = w.requeued(1, true).await;
    assert_eq!(done.message, format!("Work queue entry {} created.", done.id.unwrap()));
    assert_eq!(w.links().await, ["-"]);

    w.store.sql("UPDATE decision SET refused = 'unfit'").await.unwrap();
    let done = w.requeued(1, false).await;
    assert_eq!(done.message, format!("Work queue entry {} created.", done.id.unwrap()));
    assert_eq!(w.links().await, ["-", "-"]);
}

/// R83, R84, D29: an execution whose decisions are spoken for is queued all the same, and asks afresh.
async fn a_requeued_execution_replays_once(w: Arc<World>) {
    let mut host = w.dead_lettered("nightly").await;
    assert!(!w.requeued(1, false).await.message.contains("afresh"));
    let second = w.requeued(1, false).await;
    let says = "It asks its deciders afresh: the decisions of execution 1 are already replayed by another run or \
        queued entry, and are replayed once.";
    let created = |done: &Outcome| format!("Work queue entry {} created. {says}", done.id.unwrap());
    assert_eq!(second.message, created(&second));
    assert_eq!(w.links().await, ["1", "-"]);

    host.dispatch().await;
    host.workers.idle().await;
    let third = w.requeued(1, false).await;
    assert_eq!(third.message, created(&third));
    // A requeue replays a requeue: its answers are those that it replayed.
    let of_the_replay = w.requeued(2, false).await;
    assert!(!of_the_replay.message.contains("afresh"));
    assert_eq!(w.links().await, ["-", "2"]);
}

/// R56, D30: an execution that never started leads to the answers that it would have replayed.
async fn a_requeue_of_a_replay_that_never_started_finds_the_answers(w: Arc<World>) {
    w.dead_lettered("nightly").await;
    w.requeued(1, false).await;
    w.store
        .sql("UPDATE work_queue SET input = '{\"acts\":7}' WHERE status = 'queued'")
        .await
        .unwrap();
    let mut refusing = w.answering("refusing", REFUSES).await;
    refusing.dispatch().await;
    refusing.workers.idle().await;
    assert_eq!(w.replays().await, ["failed - -", "failed 1 -"]);
    w.store.sql("UPDATE work_queue SET input = '{}' WHERE metadata_id = 2").await.unwrap();

    w.requeued(2, false).await;
    refusing.dispatch().await;
    refusing.workers.idle().await;

    assert_eq!(w.replays().await[2], "failed 2 -");
    let answer = "SELECT failure_reason FROM metadata WHERE id = 3";
    let rows = w.store.rows(answer).await;
    // The input is another now, so that the answer of run 1, which was found, does not hold.
    assert!(rows[0].contains("it was not answered"), "{rows:?}");
    let same = "UPDATE work_queue SET input = (SELECT input FROM work_queue WHERE metadata_id = 1)
        WHERE metadata_id = 2";
    w.store.sql(same).await.unwrap();
    w.store.sql("UPDATE metadata SET replay_abandoned = TRUE WHERE id = 3").await.unwrap();
    w.requeued(2, false).await;
    refusing.dispatch().await;
    refusing.workers.idle().await;
    assert_eq!(w.decided().await[2..], ["4 Lane replayed"]);
}

/// R85, R86: a run that a requeue replays is not replayed by a retry, and the other way round.
async fn a_requeue_and_a_retry_exclude_each_other(w: Arc<World>) {
    w.failed_once(FAILS_ONCE, LEFT).await;
    let mut host = w.host("quiet").await;
    let requeued = w.requeued(1, false).await;
    assert_eq!(queued(&host.manage().await), ["retry 1 +300"]);
    assert_eq!(w.links().await, ["1", "-"]);

    let tenant = w.store.tenant;
    let entry = EntryId(requeued.id.unwrap());
    w.store.write(async |tx| queue::cancel(tx, tenant, entry).await).await;
    w.store
        .sql("UPDATE work_queue SET replay_decisions_of = 1 WHERE status = 'queued'")
        .await
        .unwrap();
    assert!(w.requeued(1, false).await.message.contains("already replayed"));
    assert_eq!(w.links().await, ["1", "-"]);
}

/// R48, D27: whatever was queued, a run's answers are replayed once: the entry that is claimed second asks afresh.
async fn the_claim_enforces_that_answers_are_replayed_once(w: Arc<World>) {
    w.failed_once(FAILS_ONCE, LEFT).await;
    let mut host = w.answering("right", RIGHT).await;
    w.requeued(1, false).await;
    assert_eq!(host.dispatch().await, 1);
    host.workers.idle().await;
    let late = NewEntry {
        input: Some("{}"),
        replay_decisions_of: Some(RunId(1)),
        ..NewEntry::new(w.store.tenant, "probe-replays")
    };
    w.store.enqueue(&late).await;

    assert_eq!(host.dispatch().await, 1);
    host.workers.idle().await;

    let replays = w.replays().await;
    assert!(replays[1].ends_with(" 1 -") && replays[2].ends_with(" - -"), "{replays:?}");
    assert_eq!(w.decided().await, ["1 Lane answers", "2 Lane replayed", "3 Lane answers"]);
}

/// D31: what is not requeued, and why, word for word.
async fn an_execution_that_cannot_be_requeued_says_why(w: Arc<World>) {
    w.dead_lettered("nightly").await;
    let input = async |text: &str| {
        let sql = format!("UPDATE work_queue SET input = {text} WHERE metadata_id = 1");
        w.store.sql(&sql).await.unwrap();
    };
    let missing = w.requeued(99, false).await;
    assert_eq!((missing.is_missing, &*missing.message), (true, "Execution 99 not found."));
    let cases = [
        ("NULL", "Execution 1 has no saved input to re-queue it with, so it cannot be re-queued."),
        (
            r#"'{"_truncated":true}'"#,
            "Execution 1 has a saved input that was too large to save in full, so it cannot be re-queued.",
        ),
        (
            r#"'{"_unserializable":"Stream"}'"#,
            "Execution 1 has a saved input that was recorded as a _unserializable placeholder, so it cannot be re-queued.",
        ),
        (
            r#"'{"_redacted":true}'"#,
            "Execution 1 has a saved input that has members that were masked because they are sensitive, so it cannot be \
             re-queued.",
        ),
    ];
    for (text, message) in cases {
        input(text).await;
        let refused = w.requeued(1, false).await;
        assert_eq!((refused.is_done, &*refused.message), (false, message));
    }
    input(r#"'{"acts":7}'"#).await;
    let refused = w.requeued(1, false).await.message;
    assert!(
        refused.starts_with("The saved input of run 1 no longer reads as Script: "),
        "{refused}"
    );
    input("'{}'").await;
    w.store.sql("UPDATE work_queue SET input_type_name = 'Order'").await.unwrap();
    let refused = w.requeued(1, false).await.message;
    let start =
        "Execution 1's saved input cannot be read back as the input it ran with: it is a 'Order'";
    assert!(refused.starts_with(start), "{refused}");
    w.store.sql("UPDATE metadata SET invoking_machine = 'orders'").await.unwrap();
    assert_eq!(
        w.requeued(1, false).await.message,
        "Execution 1 was started by a step of the state machine 'orders', and only that step receives its outcome, so it \
         cannot be re-queued. The machine retries it by entering the step again."
    );
    w.store.sql("UPDATE metadata SET invoking_machine = NULL, name = 'gone'").await.unwrap();
    assert_eq!(
        w.requeued(1, false).await.message,
        "Train gone is no longer registered, so execution 1 cannot be re-queued."
    );
    assert!(w.links().await.is_empty());
}

/// R81, E3: a trigger that asks afresh takes the link of the queued retry, and then the deciders are asked.
async fn a_triggered_retry_can_ask_afresh(w: Arc<World>) {
    w.failed_once(FAILS_ONCE, LEFT).await;
    let mut host = w.answering("right", RIGHT).await;
    host.manage().await;
    assert_eq!(w.links().await, ["1"]);
    let (db, tenant) = (&w.store.db, w.store.tenant);
    let plain = triggers::manifest(db, tenant, "nightly", Trigger::default()).await.unwrap();
    assert_eq!((plain.is_already_dispatched, plain.replay_decisions_of), (false, None));
    assert_eq!(w.links().await, ["1"]);

    let trigger = Trigger { asks_afresh: true, ..Trigger::default() };
    triggers::manifest(db, tenant, "nightly", trigger).await.unwrap();

    assert_eq!(w.links().await, ["-"]);
    host.pass().await;
    assert_eq!(w.decided().await, ["1 Lane answers", "2 Lane answers"]);
}

/// R71, R74, R75: opting out reaches the retry that is queued, and says how many; the other way clears nothing.
async fn opting_out_reaches_the_queued_retry(w: Arc<World>) {
    w.failed_once(FAILS_ONCE, LEFT).await;
    let mut host = w.answering("right", RIGHT).await;
    host.manage().await;
    assert_eq!(w.links().await, ["1"]);
    let (db, tenant) = (&w.store.db, w.store.tenant);
    let set = async |replays| {
        let ids = ["nightly".to_owned()];
        manifests::set_replay_decisions_on_retry(db, tenant, &ids, replays).await.unwrap()
    };
    assert_eq!(set(true).await.message, "0 of 1 manifest(s) set to replay decisions on retry.");
    assert_eq!(w.links().await, ["1"]);

    let done = set(false).await;
    assert_eq!(
        (done.count, &*done.message),
        (
            Some(1),
            "1 of 1 manifest(s) set to ask afresh on retry. 1 queued retry(s) no longer replay a failed run's decisions."
        )
    );
    assert_eq!(w.links().await, ["-"]);
    assert_eq!(set(false).await.message, "0 of 1 manifest(s) set to ask afresh on retry.");
    w.advance(300).await;
    host.pass().await;
    assert_eq!(w.decided().await, ["1 Lane answers", "2 Lane answers"]);
    let missing = ["nightly".to_owned(), "other".to_owned()];
    let missing =
        manifests::set_replay_decisions_on_retry(db, tenant, &missing, true).await.unwrap();
    assert_eq!((missing.is_missing, &*missing.message), (true, "Manifest 'other' not found."));
    let none = manifests::set_replay_decisions_on_retry(db, tenant, &[], true).await.unwrap();
    assert_eq!(none.message, "No ids were given.");
    let kept = "SELECT CASE WHEN replay_decisions_on_retry THEN 'on' ELSE 'off' END FROM manifest";
    assert_eq!(w.store.rows(kept).await, ["off"]);
}

/// R77: the claim looks at the switch again, whoever set it in between.
async fn the_claim_looks_at_the_switch_again(w: Arc<World>) {
    w.failed_once(FAILS_ONCE, LEFT).await;
    let mut host = w.answering("right", RIGHT).await;
    host.manage().await;
    w.store.sql("UPDATE manifest SET replay_decisions_on_retry = FALSE").await.unwrap();
    assert_eq!(w.links().await, ["1"]);
    w.advance(300).await;

    host.pass().await;

    assert_eq!(w.replays().await, ["failed - -", "completed - -"]);
    assert_eq!(w.decided().await, ["1 Lane answers", "2 Lane answers"]);
}

engine_cases!(
    a_requeued_dead_letter_replays,
    a_dead_letter_can_be_requeued_to_ask_afresh,
    a_requeue_that_comes_second_asks_afresh,
    a_failure_out_of_the_window_is_not_replayed,
    an_acknowledged_failure_is_not_replayed,
    a_requeue_after_a_failed_replay_asks_afresh,
    a_requeued_execution_replays_itself,
    a_requeued_execution_can_ask_afresh,
    a_requeued_execution_replays_once,
    a_requeue_of_a_replay_that_never_started_finds_the_answers,
    a_requeue_and_a_retry_exclude_each_other,
    the_claim_enforces_that_answers_are_replayed_once,
    an_execution_that_cannot_be_requeued_says_why,
    a_triggered_retry_can_ask_afresh,
    opting_out_reaches_the_queued_retry,
    the_claim_looks_at_the_switch_again,
);
