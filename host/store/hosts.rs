//! Hosts, and whether they are alive.

use std::time::Duration;

use super::db::{Tx, execute, on};
use super::error::StoreError;
use super::types::row;
use crate::model::ids::Incarnation;
use crate::model::timestamp::Timestamp;

/// Who a host is. Its runs carry this too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// This start of it.
    pub incarnation: Incarnation,
    /// The machine's name.
    pub name: String,
    /// Where it runs: `server`, `kubernetes`, ...
    pub environment: String,
    /// Which one it is there.
    pub instance_id: String,
    /// What an operator added, as a JSON object.
    pub labels: String,
    /// Its version of trax.
    pub version: String,
}

/// A host with its signs of life.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostLife {
    /// This start of it.
    pub incarnation: Incarnation,
    /// The machine's name.
    pub name: String,
    /// When it started.
    pub started_at: Timestamp,
    /// Its last sign of life.
    pub heartbeat_at: Timestamp,
    /// When it left of its own accord.
    pub left_at: Option<Timestamp>,
}

row!(HostLife { incarnation, name, started_at, heartbeat_at, left_at });

/// Enters a host that starts.
pub async fn register(tx: &mut Tx<'_>, host: &Host) -> Result<(), StoreError> {
    let now = tx.now().await?;
    let sql = "INSERT INTO host
            (incarnation, name, environment, instance_id, labels, version, started_at, heartbeat_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $7)";
    execute!(
        tx,
        sqlx::query(sql)
            .bind(&host.incarnation)
            .bind(&host.name)
            .bind(&host.environment)
            .bind(&host.instance_id)
            .bind(&host.labels)
            .bind(&host.version)
            .bind(now)
    )?;
    Ok(())
}

/// Gives a sign of life. False: the host counts as gone (it left, or its row was removed) and must start anew.
pub async fn heartbeat(tx: &mut Tx<'_>, incarnation: &Incarnation) -> Result<bool, StoreError> {
    let now = tx.now().await?;
    let sql = "UPDATE host SET heartbeat_at = $2 WHERE incarnation = $1 AND left_at IS NULL";
    let rows = execute!(tx, sqlx::query(sql).bind(incarnation).bind(now))?;
    Ok(rows == 1)
}

/// Notes that a host leaves of its own accord, its runs handed over.
pub async fn leave(tx: &mut Tx<'_>, incarnation: &Incarnation) -> Result<(), StoreError> {
    let now = tx.now().await?;
    let sql = "UPDATE host SET left_at = $2 WHERE incarnation = $1 AND left_at IS NULL";
    execute!(tx, sqlx::query(sql).bind(incarnation).bind(now))?;
    Ok(())
}

/// The hosts whose last sign of life is younger than the lease.
pub async fn alive(tx: &mut Tx<'_>, lease: Duration) -> Result<Vec<HostLife>, StoreError> {
    let oldest = tx.now().await?.saturating_sub(lease);
    let sql = "SELECT incarnation, name, started_at, heartbeat_at, left_at FROM host
        WHERE left_at IS NULL AND heartbeat_at > $1 ORDER BY started_at, incarnation";
    on!(tx, |c| sqlx::query_as(sql).bind(oldest).fetch_all(c))
}

/// Declares hosts dead that gave no sign of life for a lease, and says which. From now on they count as gone: one of
/// them that was only slow learns it from its next heartbeat.
pub async fn bury(tx: &mut Tx<'_>, lease: Duration) -> Result<Vec<Incarnation>, StoreError> {
    let now = tx.now().await?;
    let oldest = now.saturating_sub(lease);
    let sql = "UPDATE host SET left_at = $2 WHERE left_at IS NULL AND heartbeat_at <= $1
        RETURNING incarnation";
    on!(tx, |c| sqlx::query_scalar(sql).bind(oldest).bind(now).fetch_all(c))
}

/// Forgets hosts that left before an instant, and says how many.
pub async fn forget(tx: &mut Tx<'_>, left_before: Timestamp) -> Result<u64, StoreError> {
    let sql = "DELETE FROM host WHERE left_at < $1";
    execute!(tx, sqlx::query(sql).bind(left_before))
}
