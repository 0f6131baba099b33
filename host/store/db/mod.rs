//! The database: connections, transactions, and the few things in which SQLite and Postgres truly differ.
//!
//! A statement is written once, in `on!`, and runs on whichever database the transaction is of. Where the texts must
//! differ there is an [`Sql`] pair with a sentence that says why.

mod statement;
mod tx;

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use sqlx::{PgPool, SqlitePool};
use tokio::sync::watch;

pub(super) use statement::{Sql, execute, fenced, held, ids, of_ids, on};
pub(super) use tx::Connection;
use tx::Work;
pub use tx::{LockKey, Tx};

use super::error::{Place, StoreError};
use super::faults::Faults;
use super::open::OpenOptions;
use crate::model::timestamp::Timestamp;

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
            Ok(connection) => Ok(Tx::outermost(connection, place, self.clone())),
            Err(source) => Err(place.error(source)),
        }
    }
}
