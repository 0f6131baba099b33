//! The signs of life of this host.

use std::sync::Arc;

use crate::engine::config::Shared;
use crate::engine::error::EngineError;
use crate::engine::service::Service;
use crate::model::ids::Incarnation;
use crate::store::hosts::{self, Host};
use crate::store::queue;

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
}

impl Service for Heartbeat {
    type Report = Report;

    const NAME: &'static str = "heartbeat";

    async fn pass(&mut self) -> Result<Report, EngineError> {
        let known = self.shared.registered();
        let mut tx = self.shared.db.begin().await?;
        if let Some(host) = &known
            && hosts::heartbeat(&mut tx, &host.incarnation).await?
        {
            tx.commit().await?;
            return Ok(Report::Alive);
        }
        let mut host: Host = (*self.shared.host()).clone();
        if known.is_some() {
            tracing::warn!(host = host.name, "this host was given up; it starts anew");
            host.incarnation = Incarnation(queue::new_id()?);
        }
        hosts::register(&mut tx, &host).await?;
        tx.commit().await?;
        self.shared.set_host(Arc::new(host), true);
        self.shared.dispatcher_nudge.notify_one();
        Ok(if known.is_some() { Report::EnteredAgain } else { Report::Entered })
    }
}
