//! The signs of life of this host.

use std::sync::Arc;
use std::time::Duration;

use crate::clock::Clock;
use crate::engine::config::Shared;
use crate::engine::error::EngineError;
use crate::engine::service::Service;
use crate::model::ids::Incarnation;
use crate::model::timestamp::Timestamp;
use crate::store::hosts::{self, Host};
use crate::store::{StoreError, queue};

/// A store that is well answers within this time. A sign of life that takes longer, and half a lease, has failed.
const LIMIT_MIN: Duration = Duration::from_secs(1);

/// What a pass did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Report {
    /// The host is known, and was before.
    Alive,
    /// The host has been entered.
    Entered,
    /// It had been given up by others, and is entered as a new incarnation. What it runs is not its own any more.
    EnteredAgain,
}

/// Gives the signs of life.
pub struct Heartbeat {
    shared: Arc<Shared>,
}

impl Heartbeat {
    /// Those of an engine's host.
    pub fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// Gives one, and says at which instant of the store's clock.
    async fn beat(&self) -> Result<(Report, Timestamp), EngineError> {
        let known = self.shared.registered();
        let mut tx = self.shared.db.begin().await?;
        let now = tx.now().await?;
        if let Some(host) = &known
            && hosts::heartbeat(&mut tx, &host.incarnation).await?
        {
            tx.commit().await?;
            return Ok((Report::Alive, now));
        }
        let mut host: Host = (*self.shared.host()).clone();
        if known.is_some() {
            tracing::warn!(host = host.name, "this host was given up; it starts anew");
            host.incarnation = Incarnation(queue::new_id()?);
        }
        hosts::register(&mut tx, &host).await?;
        tx.commit().await?;
        self.shared.set_host(Arc::new(host), true);
        // What it ran is not its own any more.
        self.shared.canceller_nudge.notify_one();
        self.shared.dispatcher_nudge.notify_one();
        Ok((if known.is_some() { Report::EnteredAgain } else { Report::Entered }, now))
    }
}

impl Service for Heartbeat {
    type Report = Report;

    const NAME: &'static str = "heartbeat";

    /// A sign of life is tried again soon: others wait for it.
    const BACK_OFF_MAX: Duration = Duration::ZERO;

    async fn pass(&mut self) -> Result<Report, EngineError> {
        let limit = (self.shared.config.lease / 2).max(LIMIT_MIN);
        let beaten = match Clock.timeout(limit, self.beat()).await {
            Ok(beaten) => beaten,
            Err(_elapsed) => Err(StoreError::NoConnection(self.shared.db.place().clone()).into()),
        };
        match beaten {
            Ok((report, now)) => {
                self.shared.in_touch(now);
                Ok(report)
            }
            Err(error) => {
                self.shared.lose_touch();
                Err(error)
            }
        }
    }
}
