//! Wake-ups: news that something was queued that can be dispatched now. They make a dispatcher look sooner; what there
//! is to dispatch, only the queue says.
//!
//! Within a process every commit that queued something tells those who wait. On Postgres other hosts hear of it by a
//! notification, over a connection of its own.

use sqlx::postgres::{PgListener, PgPoolOptions};
use tokio::sync::watch;

use super::db::{Db, Pools};
use super::error::StoreError;

/// The channel on which Postgres tells of queued work.
const CHANNEL: &str = "trax_queued_work";

/// Hears of work that this process has queued.
#[derive(Debug)]
pub struct Wakeups(watch::Receiver<()>);

impl Wakeups {
    /// Waits until something has been queued since the last time. Several at once are one. `None`: the store is gone.
    pub async fn next(&mut self) -> Option<()> {
        self.0.changed().await.ok()
    }
}

/// Hears of work that any host has queued.
#[derive(Debug)]
pub struct Listener {
    listener: PgListener,
    db: Db,
}

impl Listener {
    /// Waits for news.
    ///
    /// # Errors
    /// When the connection is lost. What was told meanwhile is lost with it.
    pub async fn next(&mut self) -> Result<(), StoreError> {
        match self.listener.try_recv().await {
            Ok(Some(_)) => Ok(()),
            Ok(None) => Err(StoreError::NoConnection(self.db.place().clone())),
            Err(source) => Err(self.db.place().error(source)),
        }
    }
}

impl Db {
    /// Hears of work that this process queues from now on.
    pub fn wakeups(&self) -> Wakeups {
        Wakeups(self.queued().subscribe())
    }

    /// Listens for work that any host queues, over a connection of its own. `None`: nothing is told in this store, or
    /// wake-ups are turned off.
    pub async fn listen(&self) -> Result<Option<Listener>, StoreError> {
        let Pools::Postgres(pool) = self.pools() else { return Ok(None) };
        if !self.has_wake_ups() {
            return Ok(None);
        }
        let own = PgPoolOptions::new().max_connections(1).max_lifetime(None).idle_timeout(None);
        let own = own.connect_lazy_with((*pool.connect_options()).clone());
        let listening = async {
            let mut listener = PgListener::connect_with(&own).await?;
            listener.eager_reconnect(false);
            listener.listen(CHANNEL).await?;
            Ok(listener)
        };
        match listening.await {
            Ok(listener) => Ok(Some(Listener { listener, db: self.clone() })),
            Err(source) => Err(self.place().error(source)),
        }
    }
}
