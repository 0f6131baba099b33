//! Whole lives of a store under several hosts, drawn from a seed: the order of the parts' passes, operators, crashes at
//! commits, lost answers, an outage and jumps of the clock.
//!
//! Everything runs on one thread and on a clock that only the simulation moves. After each step the invariants are
//! looked at; in the end the faults stop, and all work must drain. A seed that failed stays in [`FAILED`].
//! `TRAX_SIMULATION_SEEDS=n` tries that many seeds in place of the usual number.

mod checks;
mod site;

use crate::postgres::Database;
use crate::processes::random::say;
use crate::simulation::site::Site;
use crate::store::world::World as StoreWorld;

/// Seeds that once failed.
const FAILED: [u64; 0] = [];
/// How many steps a life has.
const STEPS: usize = 80;
/// How many lives are tried on each database.
const SEEDS_ON_SQLITE: u64 = 24;
const SEEDS_ON_POSTGRES: u64 = 6;
/// How many lives a deliberate bug may stay unseen.
const SEEDS_UNTIL_FOUND: u64 = 12;

/// A bug that is put into a store or a host, to see that the simulation finds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bug {
    /// A completion does not bring the index of what is due in line.
    ForgetsDue,
    /// A requeue does not link the dead letter to its entry.
    ForgetsLink,
    /// The reaper fails no run of a host that is gone.
    ForgetsLost,
    /// A host starts as many runs as it likes.
    IgnoresLimit,
}

impl Bug {
    /// What makes a SQLite store behave so.
    const fn trigger(self) -> Option<&'static str> {
        match self {
            Self::ForgetsDue => Some(
                "CREATE TRIGGER bug AFTER UPDATE OF next_due_at ON manifest
                WHEN OLD.next_due_at IS NULL AND NEW.next_due_at IS NOT NULL
                    AND EXISTS (SELECT 1 FROM metadata r WHERE r.manifest_id = NEW.id
                    AND r.train_state = 'completed')
                BEGIN UPDATE manifest SET next_due_at = NULL WHERE id = NEW.id; END",
            ),
            Self::ForgetsLink => Some(
                "CREATE TRIGGER bug AFTER UPDATE OF status ON dead_letter WHEN NEW.status = 'retried'
                BEGIN UPDATE dead_letter SET work_queue_id = 777777 WHERE id = NEW.id; END",
            ),
            Self::ForgetsLost => Some(
                "CREATE TRIGGER bug AFTER UPDATE OF train_state ON metadata
                WHEN NEW.failure_exception = 'HostLost'
                BEGIN UPDATE metadata SET train_state = 'in_progress', end_time = NULL,
                    failure_exception = NULL WHERE id = NEW.id; END",
            ),
            Self::IgnoresLimit => None,
        }
    }
}

/// Lives one life. What was wrong in it is told with the step it was seen after.
async fn live(seed: u64, url: String, bug: Option<Bug>) -> Result<(), String> {
    let store = StoreWorld::open(url).await;
    let db = store.db.clone();
    let mut site = Site::new(seed, store, bug).await;
    let lived = async {
        for step in 0..STEPS {
            let taken = site.step().await;
            site.check().await.map_err(|wrong| format!("step {step}, {taken}: {wrong}"))?;
        }
        site.drain().await
    };
    let lived = lived.await;
    site.close().await;
    db.close().await;
    lived.map_err(|wrong| format!("simulation of seed {seed}: {wrong}"))
}

async fn live_on_sqlite(seed: u64, bug: Option<Bug>) -> Result<(), String> {
    let folder = tempfile::tempdir().unwrap();
    live(seed, format!("sqlite:{}", folder.path().join("trax.db").display()), bug).await
}

/// The seeds to try: those that failed once, and as many others.
fn seeds(usual: u64) -> impl Iterator<Item = u64> {
    let stated = std::env::var("TRAX_SIMULATION_SEEDS").ok();
    let count = stated.map_or(usual, |count| count.parse().unwrap());
    FAILED.into_iter().chain(1..=count).inspect(|seed| say(format_args!("seed {seed}")))
}

fn on_one_thread(work: impl Future<Output = ()>) {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().build().unwrap().block_on(work);
}

/// The bug is found within a few lives.
fn is_found(bug: Bug) {
    on_one_thread(async {
        for seed in 1..=SEEDS_UNTIL_FOUND {
            if let Err(wrong) = live_on_sqlite(seed, Some(bug)).await {
                say(format_args!("{bug:?} was found: {wrong}"));
                return;
            }
        }
        panic!("{bug:?} was not found in {SEEDS_UNTIL_FOUND} lives");
    });
}

mod sqlite {
    use super::{SEEDS_ON_SQLITE, live_on_sqlite, on_one_thread, seeds};

    #[test]
    fn every_life_keeps_the_invariants() {
        on_one_thread(async {
            for seed in seeds(SEEDS_ON_SQLITE) {
                live_on_sqlite(seed, None).await.unwrap();
            }
        });
    }
}

mod postgres {
    use super::{Database, SEEDS_ON_POSTGRES, live, on_one_thread, seeds};

    #[test]
    fn every_life_keeps_the_invariants() {
        on_one_thread(async {
            for seed in seeds(SEEDS_ON_POSTGRES) {
                let database = Database::migrated(&format!("simulation_{seed}")).await;
                let lived = live(seed, database.url(), None).await;
                database.remove().await;
                lived.unwrap();
            }
        });
    }
}

#[test]
fn a_due_that_is_forgotten_is_found() {
    is_found(Bug::ForgetsDue);
}

#[test]
fn a_link_that_is_forgotten_is_found() {
    is_found(Bug::ForgetsLink);
}

#[test]
fn lost_runs_that_are_forgotten_are_found() {
    is_found(Bug::ForgetsLost);
}

#[test]
fn a_limit_that_is_ignored_is_found() {
    is_found(Bug::IgnoresLimit);
}
