//! Everybody wants to replay the same run at the same instant: its answers are given again once, and nothing fails.

use std::ops::ControlFlow;
use std::sync::Arc;

use trax::model::ids::{DeadLetterId, RunId};
use trax::operations::dead_letters::{self, Scope};
use trax::operations::requeue;
use trax::store::dead_letters as letters;

use crate::engine::replay::LEFT;
use crate::engine::world::World;

/// Fails after the decision, in whatever attempt.
const FAILS: &str = r#"{"acts":{"Act":[{"fail":{"name":"Lost"}}]}}"#;
const SEEDS: u64 = 12;

/// Gives way a number of times that depends on a seed and on who asks, so that each seed is another order.
async fn give_way(seed: u64, who: u64) {
    let mut state = (seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        ^ (who + 1).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    state ^= state >> 29;
    for _ in 0..state % 24 {
        tokio::task::yield_now().await;
    }
}

impl World {
    /// How many queued entries, and how many runs that did not abandon it, replay a run.
    async fn replayers(&self, run: RunId) -> String {
        let sql = format!(
            "SELECT CAST((SELECT COUNT(*) FROM work_queue WHERE status = 'queued' AND replay_decisions_of = {run})
                AS TEXT),
             CAST((SELECT COUNT(*) FROM metadata WHERE replay_decisions_of = {run} AND NOT replay_abandoned) AS TEXT)"
        );
        self.store.rows(&sql).await.remove(0)
    }
}

/// R42, R88, D26: a retry from two hosts and requeues of the execution meet: one holds the link, all are queued.
async fn retries_and_requeues_of_an_execution_meet(w: Arc<World>) {
    w.deploy("probe").await;
    let (db, tenant) = (&w.store.db, w.store.tenant);
    let mut one = w.answering("one", LEFT).await;
    let mut two = w.answering("two", LEFT).await;
    for seed in 0..SEEDS {
        w.manifest(&format!("m{seed}"), "probe-replays", FAILS, 9).await;
        one.pass().await;
        let failed = w.last_run().await;
        let requeued = async |who| {
            give_way(seed, who).await;
            requeue::execution(db, tenant, failed, false).await.unwrap()
        };
        let (_, _, third, fourth) = tokio::join!(
            async {
                give_way(seed, 0).await;
                one.manage().await
            },
            async {
                give_way(seed, 1).await;
                two.manage().await
            },
            requeued(2),
            requeued(3),
        );

        assert_eq!(w.replayers(failed).await, "1 0", "{seed}");
        assert!(third.is_done && fourth.is_done);
        let says =
            [&third, &fourth].map(|done| done.message.contains("already replayed by another run"));
        assert!(says.contains(&true), "{seed}: {third:?} {fourth:?}");
        w.advance(3_600).await;
        let again = requeued(4);
        let (started, started_too, again) = tokio::join!(one.dispatch(), two.dispatch(), again);
        one.workers.idle().await;
        two.workers.idle().await;
        assert!(started + started_too >= 3, "{seed}: {started} {started_too}");
        assert!(again.message.contains("already replayed by another run"), "{seed}: {again:?}");
        assert_eq!(w.replayers(failed).await, "0 1", "{seed}");
        w.store.sql("UPDATE manifest SET is_enabled = FALSE, next_due_at = NULL").await.unwrap();
        two.dispatch().await;
        two.workers.idle().await;
    }
    let replayed = "SELECT CAST(COUNT(*) AS TEXT) FROM decision WHERE replayed";
    assert_eq!(w.store.rows(replayed).await, [SEEDS.to_string()]);
}

/// R42, R88, R89: every way to requeue a dead letter meets a requeue of the execution: one holds the link.
async fn requeues_of_a_dead_letter_and_of_its_execution_meet(w: Arc<World>) {
    w.deploy("probe").await;
    let (db, tenant) = (&w.store.db, w.store.tenant);
    let mut one = w.answering("one", LEFT).await;
    let mut two = w.answering("two", LEFT).await;
    for seed in 0..SEEDS {
        w.manifest(&format!("m{seed}"), "probe-replays", FAILS, 0).await;
        one.pass().await;
        let failed = w.last_run().await;
        one.manage().await;
        w.advance(1).await;
        let letter = DeadLetterId(i64::try_from(seed).unwrap() + 1);
        let all = || async {
            dead_letters::requeue_all(db, tenant, Scope::All, false, |_| ControlFlow::Continue(()))
                .await
                .unwrap()
        };
        let (single, batch, first, second, execution, _) = tokio::join!(
            async {
                give_way(seed, 0).await;
                dead_letters::requeue(db, tenant, letter, false).await.unwrap()
            },
            async {
                give_way(seed, 1).await;
                dead_letters::requeue_batch(db, tenant, &[letter], false).await.unwrap()
            },
            async {
                give_way(seed, 2).await;
                all().await
            },
            async {
                give_way(seed, 3).await;
                all().await
            },
            async {
                give_way(seed, 4).await;
                requeue::execution(db, tenant, failed, false).await.unwrap()
            },
            async {
                give_way(seed, 5).await;
                two.manage().await
            },
        );

        assert_eq!(w.replayers(failed).await, "1 0", "{seed}");
        let resolved: i64 = i64::from(single.is_done)
            + [&batch, &first, &second].map(|done| done.count.unwrap()).iter().sum::<i64>();
        assert_eq!(resolved, 1, "{seed}: {single:?} {batch:?} {first:?} {second:?}");
        let told = [&single, &batch, &first, &second, &execution];
        let afresh = told.iter().filter(|done| done.message.contains("are replayed once.")).count();
        assert_eq!(afresh, 1, "{seed}: {told:?}");
        let stored = w.store.read(async |tx| letters::detail(tx, tenant, letter).await).await;
        assert_eq!(stored.status.as_str(), "retried");
        let (started, started_too) = tokio::join!(one.dispatch(), two.dispatch());
        one.workers.idle().await;
        two.workers.idle().await;
        assert_eq!(started + started_too, 2, "{seed}");
        assert_eq!(w.replayers(failed).await, "0 1", "{seed}");
        w.store.sql("UPDATE manifest SET is_enabled = FALSE, next_due_at = NULL").await.unwrap();
    }
    let replayed = "SELECT CAST(COUNT(*) AS TEXT) FROM decision WHERE replayed";
    assert_eq!(w.store.rows(replayed).await, [SEEDS.to_string()]);
}

engine_cases!(
    retries_and_requeues_of_an_execution_meet,
    requeues_of_a_dead_letter_and_of_its_execution_meet,
);
