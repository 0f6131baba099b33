//! The database: connections, transactions, and the few things in which SQLite and Postgres truly differ.
//!
//! A statement is written once, in `on!`, and runs on whichever database the transaction is of. Where the texts must
//! differ there is an [`Sql`] pair with a sentence that says why.

use std::future::Future;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use sqlx::{PgPool, Postgres, Sqlite, SqlitePool, Transaction};
use tokio::sync::watch;

use super::error::{Place, StoreError};
use super::faults::Faults;
use super::open::OpenOptions;
use crate::model::ids::Claim;
use crate::model::timestamp::Timestamp;

/// Evaluates a query on the concrete connection of a [`Tx`], and names the place in its error.
macro_rules! on {
    ($tx:expr, |$connection:ident| $query:expr) => {{
        let tx: &mut $crate::store::db::Tx<'_> = $tx;
        let result = match &mut tx.connection {
            $crate::store::db::Connection::Sqlite(transaction) => {
                let $connection = &mut **transaction;
                $query.await
            }
            $crate::store::db::Connection::Postgres(transaction) => {
                let $connection = &mut **transaction;
                $query.await
            }
        };
        result.map_err(|source| tx.place.error(source))
    }};
}
pub(super) use on;

/// Executes a statement on the concrete connection of a [`Tx`], and gives the number of rows it changed.
macro_rules! execute {
    ($tx:expr, $query:expr) => {
        $crate::store::db::on!($tx, |connection| async {
            $query.execute(connection).await.map(|done| done.rows_affected())
        })
    };
}
pub(super) use execute;

/// A statement whose text differs between the databases.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sql {
    pub(super) sqlite: &'static str,
    pub(super) postgres: &'static str,
}

/// A statement that inserts for a run, from the claim `$1`, `$2`: nothing when that claim was lost. Postgres holds the
/// run's row until the transaction ends, so that nobody claims the run in between; SQLite has one writer.
macro_rules! fenced {
    ($insert:literal) => {
        fenced!($insert, "")
    };
    ($insert:literal, $conflict:literal) => {
        $crate::store::db::Sql {
            sqlite: concat!(fenced!(@text $insert), $conflict),
            postgres: concat!(fenced!(@text $insert), " FOR SHARE ", $conflict),
        }
    };
    (@text $insert:literal) => {
        concat!(
            $insert,
            " FROM metadata WHERE id = $1 AND claim_token = $2 AND train_state = 'in_progress'
                AND parked_at IS NULL "
        )
    };
}
pub(super) use fenced;

/// A statement about the entries or runs whose ids `$1` lists as a JSON array.
macro_rules! of_ids {
    ($before:literal, $after:literal) => {
        $crate::store::db::Sql {
            sqlite: concat!($before, " IN (SELECT value FROM json_each($1)) ", $after),
            postgres: concat!(
                $before,
                " IN (SELECT CAST(value AS BIGINT)
                    FROM json_array_elements_text(CAST($1 AS JSON))) ",
                $after
            ),
        }
    };
}
pub(super) use of_ids;

/// Ids as the JSON array that [`of_ids`] takes.
pub(super) fn ids(ids: impl Iterator<Item = i64>) -> String {
    let ids: Vec<String> = ids.map(|id| id.to_string()).collect();
    format!("[{}]", ids.join(","))
}

/// Fails when a write under a claim changed nothing: the claim was lost.
pub(super) fn held(claim: Claim, rows: u64) -> Result<(), StoreError> {
    if rows == 0 { Err(StoreError::LostClaim(claim.run)) } else { Ok(()) }
}

/// The store's connections. Cloning it is cheap; all clones are one store.
///
/// One task holds one [`Tx`] at a time: SQLite has one writer, and in memory one connection for everything.
#[derive(Debug, Clone)]
pub struct Db(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    pools: Pools,
    place: Place,
    clock: TestClock,
    faults: Option<Faults>,
    /// Sent to when a commit has queued something that can be dispatched now.
    queued: watch::Sender<()>,
    has_wake_ups: bool,
}

#[derive(Debug)]
pub(super) enum Pools {
    /// One connection that writes, and some that read beside it.
    Sqlite {
        writer: SqlitePool,
        readers: SqlitePool,
    },
    Postgres(PgPool),
}

/// Moves the database's clock, in tests.
#[derive(Debug, Default)]
struct TestClock {
    skew_micros: AtomicI64,
    /// When not 0, the clock stands still here.
    fixed_micros: AtomicI64,
}

impl Db {
    pub(super) fn new(pools: Pools, place: Place, options: &OpenOptions) -> Self {
        Self(Arc::new(Inner {
            pools,
            place,
            clock: TestClock::default(),
            faults: options.faults.clone(),
            queued: watch::Sender::new(()),
            has_wake_ups: options.has_wake_ups,
        }))
    }

    pub(super) fn pools(&self) -> &Pools {
        &self.0.pools
    }

    pub(super) fn queued(&self) -> &watch::Sender<()> {
        &self.0.queued
    }

    /// Whether hosts tell each other of queued work.
    pub(super) fn has_wake_ups(&self) -> bool {
        self.0.has_wake_ups
    }

    /// Where it is, in words.
    pub fn place(&self) -> &Place {
        &self.0.place
    }

    /// Whether it is Postgres, which wakes other hosts; SQLite serves one.
    pub fn is_postgres(&self) -> bool {
        matches!(self.0.pools, Pools::Postgres(_))
    }

    /// Moves the database's clock forward or back, in tests.
    pub fn set_clock_skew(&self, micros: i64) {
        self.0.clock.skew_micros.store(micros, Ordering::Relaxed);
    }

    /// Stops the database's clock at an instant, in tests.
    pub fn set_clock(&self, now: Timestamp) {
        self.0.clock.fixed_micros.store(now.as_micros(), Ordering::Relaxed);
    }

    /// Begins a transaction that writes. On SQLite it is the only one.
    pub async fn begin(&self) -> Result<Tx<'static>, StoreError> {
        if let Some(faults) = &self.0.faults {
            faults.before_writing(&self.0.place)?;
        }
        let begun = match &self.0.pools {
            // Taking the write lock at once: a transaction that reads first and writes later would fail when another
            // process has written in between.
            Pools::Sqlite { writer, .. } => {
                writer.begin_with("BEGIN IMMEDIATE").await.map(Connection::Sqlite)
            }
            Pools::Postgres(pool) => pool.begin().await.map(Connection::Postgres),
        };
        self.transaction(begun)
    }

    /// Runs work in one transaction: kept if it succeeds, undone if it fails.
    ///
    /// # Errors
    /// Whatever the work or the database reports.
    pub async fn write<T, E: From<StoreError>>(
        &self,
        work: impl AsyncFnOnce(&mut Work) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut tx = Work(self.begin().await?);
        let value = work(&mut tx).await?;
        tx.0.commit().await?;
        Ok(value)
    }

    /// Begins a transaction that only reads.
    pub async fn read(&self) -> Result<Tx<'static>, StoreError> {
        if let Some(faults) = &self.0.faults {
            faults.before_reading(&self.0.place)?;
        }
        let begun = match &self.0.pools {
            Pools::Sqlite { readers, .. } => readers.begin().await.map(Connection::Sqlite),
            Pools::Postgres(pool) => {
                pool.begin_with("BEGIN READ ONLY").await.map(Connection::Postgres)
            }
        };
        self.transaction(begun)
    }

    /// Closes every connection once it is free.
    pub fn close(&self) -> impl Future<Output = ()> + Send + use<> {
        let inner = Arc::clone(&self.0);
        async move {
            match &inner.pools {
                Pools::Sqlite { writer, readers } => {
                    readers.close().await;
                    writer.close().await;
                }
                Pools::Postgres(pool) => pool.close().await,
            }
        }
    }

    fn transaction(
        &self,
        begun: Result<Connection<'static>, sqlx::Error>,
    ) -> Result<Tx<'static>, StoreError> {
        let place = self.0.place.clone();
        match begun {
            Ok(connection) => Ok(Tx {
                connection,
                place,
                now: None,
                is_outermost: true,
                has_queued: Arc::default(),
                db: self.clone(),
            }),
            Err(source) => Err(place.error(source)),
        }
    }
}

#[derive(Debug)]
pub(super) enum Connection<'c> {
    Sqlite(Transaction<'c, Sqlite>),
    Postgres(Transaction<'c, Postgres>),
}

/// A transaction. Dropped without [`commit`](Self::commit), it never happened.
#[derive(Debug)]
pub struct Tx<'c> {
    pub(super) connection: Connection<'c>,
    pub(super) place: Place,
    now: Option<Timestamp>,
    is_outermost: bool,
    /// Whether the transaction, in any of its parts, has queued something that can be dispatched now.
    has_queued: Arc<AtomicBool>,
    db: Db,
}

/// A transaction that [`Db::write`] keeps or undoes. A type without a lifetime of its own: a future that holds an async
/// closure over one that has it cannot be sent to another thread.
#[derive(Debug)]
pub struct Work(Tx<'static>);

impl Deref for Work {
    type Target = Tx<'static>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for Work {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

impl Tx<'_> {
    /// Begins a part that can be undone by itself: one bad row does not spoil a pass.
    pub async fn savepoint(&mut self) -> Result<Tx<'_>, StoreError> {
        let begun = match &mut self.connection {
            Connection::Sqlite(outer) => sqlx::Acquire::begin(outer).await.map(Connection::Sqlite),
            Connection::Postgres(outer) => {
                sqlx::Acquire::begin(outer).await.map(Connection::Postgres)
            }
        };
        let connection = begun.map_err(|source| self.place.error(source))?;
        let place = self.place.clone();
        Ok(Tx {
            connection,
            place,
            now: self.now,
            is_outermost: false,
            has_queued: Arc::clone(&self.has_queued),
            db: self.db.clone(),
        })
    }

    /// Notes that something was queued that can be dispatched now: the commit tells those who wait for it.
    pub(super) fn note_queued(&self) {
        self.has_queued.store(true, Ordering::Relaxed);
    }

    /// Keeps what was done.
    pub async fn commit(self) -> Result<(), StoreError> {
        let faults = self.db.0.faults.as_ref().filter(|_| self.is_outermost);
        if let Some(faults) = faults {
            faults.before_writing(&self.place)?;
        }
        let committed = match self.connection {
            Connection::Sqlite(transaction) => transaction.commit().await,
            Connection::Postgres(transaction) => transaction.commit().await,
        };
        committed.map_err(|source| self.place.error(source))?;
        if self.is_outermost && self.has_queued.load(Ordering::Relaxed) {
            self.db.queued().send_replace(());
        }
        faults.map_or(Ok(()), |faults| faults.after_commit(&self.place))
    }

    /// Undoes what was done, and waits until that is so.
    pub async fn rollback(self) -> Result<(), StoreError> {
        let undone = match self.connection {
            Connection::Sqlite(transaction) => transaction.rollback().await,
            Connection::Postgres(transaction) => transaction.rollback().await,
        };
        undone.map_err(|source| self.place.error(source))
    }

    /// The database's time, read once per transaction: every instant that is stored or compared is this one.
    pub async fn now(&mut self) -> Result<Timestamp, StoreError> {
        if let Some(now) = self.now {
            return Ok(now);
        }
        let clock = &self.db.0.clock;
        let fixed = clock.fixed_micros.load(Ordering::Relaxed);
        let skew = clock.skew_micros.load(Ordering::Relaxed);
        let micros: i64 = if fixed == 0 {
            let sql = self.pick(Sql {
                // SQLite's clock has milliseconds.
                sqlite: "SELECT CAST(unixepoch('now', 'subsec') * 1000 AS INTEGER) * 1000",
                // Not `now()`, which is when the transaction began: it may have waited for a lock since.
                postgres: "SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)",
            });
            on!(self, |c| sqlx::query_scalar(sql).fetch_one(c))?
        } else {
            fixed
        };
        let now = Timestamp::from_micros(micros.saturating_add(skew)).unwrap_or(Timestamp::MAX);
        self.now = Some(now);
        Ok(now)
    }

    /// Takes a lock that all hosts share until the transaction ends, unless another holds it: then false.
    ///
    /// SQLite's one writer is the lock.
    pub async fn try_lock(&mut self, key: LockKey) -> Result<bool, StoreError> {
        let Connection::Postgres(_) = &self.connection else { return Ok(true) };
        let (class, object) = key.parts();
        on!(self, |c| sqlx::query_scalar("SELECT pg_try_advisory_xact_lock($1, $2)")
            .bind(class)
            .bind(object)
            .fetch_one(c))
    }

    /// Waits for a lock that all hosts share, and holds it until the transaction ends.
    pub async fn lock(&mut self, key: LockKey) -> Result<(), StoreError> {
        let Connection::Postgres(_) = &self.connection else { return Ok(()) };
        let (class, object) = key.parts();
        execute!(
            self,
            sqlx::query("SELECT pg_advisory_xact_lock($1, $2)").bind(class).bind(object)
        )?;
        Ok(())
    }

    /// How long statements of this transaction wait for what others hold; zero: as long as it takes. SQLite's one
    /// writer waits before it begins.
    pub(super) async fn wait_for_locks(&mut self, at_most: Duration) -> Result<(), StoreError> {
        let Connection::Postgres(_) = &self.connection else { return Ok(()) };
        let sql = format!("SET LOCAL lock_timeout = {}", at_most.as_millis());
        self.execute_text(&sql).await.map(|_| ())
    }

    /// Runs statements that the store has no function for, and says how many rows they changed. For tests and repair.
    pub async fn execute_text(&mut self, sql: &str) -> Result<u64, StoreError> {
        let sql = sqlx::AssertSqlSafe(sql.to_owned());
        let rows = match &mut self.connection {
            Connection::Sqlite(transaction) => sqlx::raw_sql(sql)
                .execute(&mut **transaction)
                .await
                .map(|done| done.rows_affected()),
            Connection::Postgres(transaction) => sqlx::raw_sql(sql)
                .execute(&mut **transaction)
                .await
                .map(|done| done.rows_affected()),
        };
        rows.map_err(|source| self.place.error(source))
    }

    /// The rows of a query of text columns that the store has no function for. For tests and repair.
    pub async fn text_rows(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>, StoreError> {
        let sql = sqlx::AssertSqlSafe(sql.to_owned());
        let read = match &mut self.connection {
            Connection::Sqlite(transaction) => {
                sqlx::query(sql).fetch_all(&mut **transaction).await.map(|rows| texts(&rows))
            }
            Connection::Postgres(transaction) => {
                sqlx::query(sql).fetch_all(&mut **transaction).await.map(|rows| texts(&rows))
            }
        };
        read.and_then(|rows| rows).map_err(|source| self.place.error(source))
    }

    /// How the database would run a query, as it says it, line by line. For tests and repair.
    pub async fn plan(&mut self, query: &str) -> Result<Vec<String>, StoreError> {
        let place = self.place.clone();
        let lines = match &mut self.connection {
            Connection::Sqlite(transaction) => {
                let sql = sqlx::AssertSqlSafe(format!("EXPLAIN QUERY PLAN {query}"));
                // Before the text come numbers that make a tree of the lines.
                let lines: Result<Vec<(i64, i64, i64, String)>, _> =
                    sqlx::query_as(sql).fetch_all(&mut **transaction).await;
                lines.map(|lines| lines.into_iter().map(|line| line.3).collect())
            }
            Connection::Postgres(transaction) => {
                let sql = sqlx::AssertSqlSafe(format!("EXPLAIN {query}"));
                sqlx::query_scalar(sql).fetch_all(&mut **transaction).await
            }
        };
        lines.map_err(|source| place.error(source))
    }

    /// Whether this is a transaction on Postgres.
    pub fn is_postgres(&self) -> bool {
        matches!(self.connection, Connection::Postgres(_))
    }

    /// The text for this database.
    pub(super) fn pick(&self, sql: Sql) -> &'static str {
        match self.connection {
            Connection::Sqlite(_) => sql.sqlite,
            Connection::Postgres(_) => sql.postgres,
        }
    }
}

fn texts<R: sqlx::Row>(rows: &[R]) -> Result<Vec<Vec<Option<String>>>, sqlx::Error>
where
    usize: sqlx::ColumnIndex<R>,
    for<'r> Option<String>: sqlx::Decode<'r, R::Database> + sqlx::Type<R::Database>,
{
    let row = |row: &R| (0..row.len()).map(|column| row.try_get(column)).collect();
    rows.iter().map(row).collect()
}

/// What hosts take turns at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockKey {
    /// Changing the schema.
    Migrate,
    /// The cycle of the manifest manager.
    ManifestManager,
    /// Claiming queue entries.
    Claim,
    /// Adding and activating versions of components.
    Deploy,
}

impl LockKey {
    /// Trax's own class of advisory locks, so that other users of the database are not met by chance.
    const CLASS: i32 = 0x5472_6178;

    const fn parts(self) -> (i32, i32) {
        let object = match self {
            Self::Migrate => 1,
            Self::ManifestManager => 2,
            Self::Claim => 3,
            Self::Deploy => 4,
        };
        (Self::CLASS, object)
    }
}
