//! Benchmarks of the queue: how fast entries go in, become runs and end, on a database that has nothing else to do.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use crate::clock::Clock;
use crate::engine::config::EngineConfig;
use crate::engine::events::{Ending, EngineEvent};
use crate::engine::supervisor::Engine;
use crate::guest::component::GuestHost;
use crate::model::ids::{RunId, TenantId};
use crate::operations::error::OperationError;
use crate::store::enqueue_many::enqueue_many;
use crate::store::queue::NewEntry;
use crate::store::statistics::{self, Written};
use crate::store::{Db, OpenOptions, StoreError, open, queue};

/// How long the end of a drain may go unnoticed.
const POLL: Duration = Duration::from_millis(10);
/// How long a single run may take before the benchmark is given up.
const PATIENCE: Duration = Duration::from_mins(1);

/// What is measured, and where.
#[derive(Clone)]
pub struct Bench {
    /// The database.
    pub url: String,
    /// Whose entries.
    pub tenant: TenantId,
    /// What runs the guests.
    pub guests: Arc<GuestHost>,
    /// The train of each run.
    pub train: String,
    /// The input of each run, as canonical JSON.
    pub input: String,
    /// How many runs a host has in progress at once.
    pub worker_count: usize,
    /// How many entries are queued in one transaction.
    pub batch: usize,
}

/// How many there were of something, how long they took, and what they cost.
#[derive(Debug, Clone, Copy)]
pub struct Measured {
    /// How many.
    pub count: usize,
    /// How long they took together.
    pub elapsed: Duration,
    /// What the database wrote for them.
    pub written: Written,
    /// What this process wrote to files for them: on SQLite its log and the database itself.
    pub file_bytes: u64,
}

impl Measured {
    /// How many in a second.
    #[expect(clippy::cast_precision_loss, reason = "no benchmark counts so far")]
    pub fn per_second(&self) -> f64 {
        self.count as f64 / self.elapsed.as_secs_f64()
    }
}

/// How long single runs took, each alone, in order.
#[derive(Debug, Clone, Default)]
pub struct Latencies {
    /// From before its entry was made to the start of the run.
    pub starts: Vec<Duration>,
    /// From before its entry was made to the run's end.
    pub ends: Vec<Duration>,
}

/// The duration that this share of all, in order, is at most as long as.
pub fn quantile(sorted: &[Duration], thousandths: usize) -> Duration {
    let index = (sorted.len() * thousandths).div_ceil(1_000).saturating_sub(1);
    sorted.get(index).copied().unwrap_or_default()
}

impl Bench {
    /// Refuses a database that has runs: a benchmark leaves its own in it.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] if it has.
    pub async fn refuse_used(db: &Db) -> Result<(), OperationError> {
        let mut tx = db.read().await?;
        let (runs, _) = statistics::runs(&mut tx).await?;
        if runs == 0 && !statistics::is_busy(&mut tx).await? {
            return Ok(());
        }
        Err(StoreError::Conflict {
            what: "database",
            name: db.place().to_string(),
            problem: format!(
                "has {runs} runs; a benchmark leaves its own, so give an empty database"
            ),
        }
        .into())
    }

    /// How the database runs.
    ///
    /// # Errors
    /// When it does not answer.
    pub async fn settings(&self) -> Result<Vec<(String, String)>, OperationError> {
        let db = self.open().await?;
        // Not a reader: of SQLite's connections the one that writes is the one that matters.
        let settings = statistics::settings(&mut db.begin().await?).await?;
        db.close().await;
        Ok(settings)
    }

    /// Queues entries, batch after batch.
    ///
    /// # Errors
    /// When the store does not take them.
    pub async fn enqueue(&self, count: usize) -> Result<Measured, OperationError> {
        let db = self.open().await?;
        let meter = Meter::start(&db).await?;
        let entry = self.entry();
        let mut left = count;
        while left > 0 {
            let batch = vec![entry.clone(); left.min(self.batch)];
            left -= batch.len();
            db.write(async |tx| enqueue_many(tx, &batch).await).await?;
        }
        let elapsed = meter.elapsed();
        db.close().await;
        self.read(count, elapsed, meter).await
    }

    /// Runs everything that is queued, on this many hosts: from their start until the database says that nothing is
    /// left. With `is_held` beside a transaction that stays open all the while.
    ///
    /// # Errors
    /// When the store fails, or a run does.
    pub async fn drain(
        &self,
        count: usize,
        host_count: usize,
        is_held: bool,
    ) -> Result<Measured, OperationError> {
        let watch = self.open().await?;
        let mut held = None;
        if is_held {
            let mut tx =
                if watch.is_postgres() { watch.begin().await? } else { watch.read().await? };
            statistics::hold(&mut tx).await?;
            held = Some(tx);
        }
        let (_, before) = statistics::runs(&mut watch.read().await?).await?;
        let meter = Meter::start(&watch).await?;
        let mut hosts = Vec::new();
        for _ in 0..host_count {
            hosts.push(self.host().await?);
        }
        loop {
            Clock.sleep(POLL).await;
            if !statistics::is_busy(&mut watch.read().await?).await? {
                break;
            }
        }
        let elapsed = meter.elapsed();
        drop(held);
        for (engine, db) in hosts {
            engine.drain().await;
            db.close().await;
        }
        let (_, after) = statistics::runs(&mut watch.read().await?).await?;
        watch.close().await;
        if usize::try_from(after - before).ok() != Some(count) {
            return Err(failed(&format!("{} of {count} runs completed", after - before)));
        }
        self.read(count, elapsed, meter).await
    }

    /// Runs this many, each alone on a host that has nothing else to do. Entries are made over connections of their
    /// own.
    ///
    /// # Errors
    /// When the store fails, or a run does.
    pub async fn latencies(&self, count: usize) -> Result<Latencies, OperationError> {
        let (engine, db) = self.host().await?;
        let producer = if db.is_postgres() { self.open().await? } else { db.clone() };
        let mut events = engine.events();
        let mut latencies = Latencies::default();
        // The first ones load the component and warm the caches.
        for index in 0..count + 20 {
            let queued = Clock.instant();
            let entry = self.entry();
            producer.write(async |tx| queue::enqueue(tx, &entry).await).await?;
            engine.nudge();
            let waiting = one_run(&mut events);
            let (started, ended) = Clock
                .timeout(PATIENCE, waiting)
                .await
                .map_err(|_| failed("a run did not end in time"))??;
            if index >= 20 {
                latencies.starts.push(started.duration_since(queued));
                latencies.ends.push(ended.duration_since(queued));
            }
        }
        engine.drain().await;
        db.close().await;
        producer.close().await;
        latencies.starts.sort_unstable();
        latencies.ends.sort_unstable();
        Ok(latencies)
    }

    fn entry(&self) -> NewEntry<'_> {
        NewEntry { input: Some(&self.input), ..NewEntry::new(self.tenant, &self.train) }
    }

    async fn open(&self) -> Result<Db, OperationError> {
        Ok(open(&self.url, &OpenOptions::default()).await?)
    }

    async fn host(&self) -> Result<(Engine, Db), OperationError> {
        let db = self.open().await?;
        let config = EngineConfig {
            worker_count: self.worker_count,
            max_active_jobs: None,
            ..EngineConfig::of_this_machine()?
        };
        Ok((Engine::start(config, db.clone(), Arc::clone(&self.guests)), db))
    }

    /// What was written since the meter started, once every connection has said what it did.
    async fn read(
        &self,
        count: usize,
        elapsed: Duration,
        meter: Meter,
    ) -> Result<Measured, OperationError> {
        let db = self.open().await?;
        let written = statistics::written(&mut db.read().await?).await?;
        db.close().await;
        let since =
            |now: Option<i64>, then: Option<i64>| now.zip(then).map(|(now, then)| now - then);
        Ok(Measured {
            count,
            elapsed,
            written: Written {
                log_bytes: since(written.log_bytes, meter.written.log_bytes),
                dead_rows: since(written.dead_rows, meter.written.dead_rows),
            },
            file_bytes: file_bytes().saturating_sub(meter.file_bytes),
        })
    }
}

/// Waits for the start and the end of the next run.
async fn one_run(events: &mut Receiver<EngineEvent>) -> Result<(Instant, Instant), OperationError> {
    let mut current: Option<(RunId, Instant)> = None;
    loop {
        match events.recv().await {
            Ok(EngineEvent::RunStarted { run, .. }) => current = Some((run, Clock.instant())),
            Ok(EngineEvent::RunEnded { run, ending, .. }) => {
                let Some((_, started)) = current.filter(|(current, _)| *current == run) else {
                    continue;
                };
                return match ending {
                    Ending::Completed { .. } => Ok((started, Clock.instant())),
                    other => Err(failed(&format!("run {run} did not complete: {other:?}"))),
                };
            }
            Ok(_) | Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return Err(failed("the engine has stopped")),
        }
    }
}

fn failed(problem: &str) -> OperationError {
    OperationError::Stated(format!("the benchmark failed: {problem}"))
}

/// When a measurement started, and what had been written by then.
struct Meter {
    started: Instant,
    written: Written,
    file_bytes: u64,
}

impl Meter {
    async fn start(db: &Db) -> Result<Self, OperationError> {
        let written = statistics::written(&mut db.read().await?).await?;
        Ok(Self { started: Clock.instant(), written, file_bytes: file_bytes() })
    }

    fn elapsed(&self) -> Duration {
        Clock.instant().duration_since(self.started)
    }
}

/// The bytes that this process has written to files so far; 0 where the system does not say.
fn file_bytes() -> u64 {
    let io = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
    let line = io.lines().find_map(|line| line.strip_prefix("wchar: "));
    line.and_then(|bytes| bytes.parse().ok()).unwrap_or(0)
}
