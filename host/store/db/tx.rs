//! Transactions, and what hosts take turns at within one.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sqlx::{Postgres, Sqlite, Transaction};

use super::{Db, Sql, execute, on};
use crate::model::timestamp::Timestamp;
use crate::store::error::{Place, StoreError};

#[derive(Debug)]
pub(in crate::store) enum Connection<'c> {
    Sqlite(Transaction<'c, Sqlite>),
    Postgres(Transaction<'c, Postgres>),
}

/// A transaction. Dropped without [`commit`](Self::commit), it never happened.
#[derive(Debug)]
pub struct Tx<'c> {
    pub(in crate::store) connection: Connection<'c>,
    pub(in crate::store) place: Place,
    now: Option<Timestamp>,
    is_outermost: bool,
    /// Whether the transaction, in any of its parts, has queued something that can be dispatched now.
    has_queued: Arc<AtomicBool>,
    db: Db,
}

/// A transaction that [`Db::write`] keeps or undoes. A type without a lifetime of its own: a future that holds an async
/// closure over one that has it cannot be sent to another thread.
#[derive(Debug)]
pub struct Work(pub(super) Tx<'static>);

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

impl<'c> Tx<'c> {
    /// One that stands by itself.
    pub(super) fn outermost(connection: Connection<'c>, place: Place, db: Db) -> Self {
        let has_queued = Arc::default();
        Self { connection, place, now: None, is_outermost: true, has_queued, db }
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
    pub(in crate::store) fn note_queued(&self) {
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
    pub(in crate::store) async fn wait_for_locks(
        &mut self,
        at_most: Duration,
    ) -> Result<(), StoreError> {
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
    pub(in crate::store) fn pick(&self, sql: Sql) -> &'static str {
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
