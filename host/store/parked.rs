//! Parked runs: in progress, owned by nobody, with what they need to continue on any host.
//!
//! Waiting for a person, lack of room and hand-over at shutdown are all this. Parking spends the claim; continuing
//! makes a new one, of the same run.

use super::capacity::Capacity;
use super::claim::LOOK_AHEAD;
use super::db::{Sql, Tx, execute, held, on};
use super::error::StoreError;
use super::hosts::Host;
use super::types::{ParkReason, row};
use crate::model::ids::{Claim, ClaimToken, GroupId, RunId, TenantId};
use crate::model::timestamp::Timestamp;

/// What a run needs to continue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stop<'a> {
    /// Why it is parked.
    pub reason: ParkReason,
    /// The node it stands at; `None`: it has not begun.
    pub node_id: Option<&'a str>,
    /// Its Memory, encrypted, with the id of the key.
    pub memory: Option<(&'a [u8], &'a str)>,
    /// When it may continue without being woken; `None`: never.
    pub wake_at: Option<Timestamp>,
}

/// A run that continues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Continued {
    /// The run.
    pub run: RunId,
    /// The new claim of it.
    pub claim_token: ClaimToken,
    /// Whose it is.
    pub tenant_id: TenantId,
    /// The train.
    pub name: String,
    /// Why it was parked.
    pub reason: ParkReason,
    /// The node it stands at; `None`: it has not begun.
    pub node_id: Option<String>,
    /// Its Memory, encrypted.
    pub memory: Option<Vec<u8>>,
    /// The id of the key.
    pub key_id: Option<String>,
}

row!(Continued { run, claim_token, tenant_id, name, reason, node_id, memory, key_id });

/// Parks a run at a boundary.
pub async fn park(tx: &mut Tx<'_>, claim: Claim, stop: &Stop<'_>) -> Result<(), StoreError> {
    let now = tx.now().await?;
    let sql =
        "UPDATE metadata SET parked_at = $3, host_incarnation = NULL, claim_token = claim_token + 1
        WHERE id = $1 AND claim_token = $2 AND train_state = 'in_progress' AND parked_at IS NULL";
    held(claim, execute!(tx, sqlx::query(sql).bind(claim.run).bind(claim.token).bind(now))?)?;
    let sql =
        "INSERT INTO parked_run (metadata_id, reason, node_id, memory, key_id, wake_at, parked_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7)";
    execute!(
        tx,
        sqlx::query(sql)
            .bind(claim.run)
            .bind(stop.reason)
            .bind(stop.node_id)
            .bind(stop.memory.map(|(memory, _)| memory))
            .bind(stop.memory.map(|(_, key_id)| key_id))
            .bind(stop.wake_at)
            .bind(now)
    )?;
    Ok(())
}

/// Lets a parked run continue as soon as a host looks. False: it is not parked.
pub async fn wake(tx: &mut Tx<'_>, run: RunId) -> Result<bool, StoreError> {
    let now = tx.now().await?;
    let sql = "UPDATE parked_run SET wake_at = $2 WHERE metadata_id = $1";
    Ok(execute!(tx, sqlx::query(sql).bind(run).bind(now))? == 1)
}

/// Parked runs that may continue. Postgres leaves out what another host takes right now; SQLite has one writer.
const READY: Sql = Sql {
    sqlite: "SELECT p.metadata_id, r.tenant_id, m.manifest_group_id, g.max_active_jobs
        FROM parked_run p JOIN metadata r ON r.id = p.metadata_id
        LEFT JOIN manifest m ON m.id = r.manifest_id
        LEFT JOIN manifest_group g ON g.id = m.manifest_group_id
        WHERE p.wake_at IS NOT NULL AND p.wake_at <= $1
        ORDER BY p.wake_at, p.metadata_id LIMIT $2",
    postgres: "SELECT p.metadata_id, r.tenant_id, m.manifest_group_id, g.max_active_jobs
        FROM parked_run p JOIN metadata r ON r.id = p.metadata_id
        LEFT JOIN manifest m ON m.id = r.manifest_id
        LEFT JOIN manifest_group g ON g.id = m.manifest_group_id
        WHERE p.wake_at IS NOT NULL AND p.wake_at <= $1
        ORDER BY p.wake_at, p.metadata_id LIMIT $2 FOR UPDATE OF p SKIP LOCKED",
};

struct Ready {
    metadata_id: RunId,
    tenant_id: TenantId,
    manifest_group_id: Option<GroupId>,
    max_active_jobs: Option<i32>,
}

row!(Ready { metadata_id, tenant_id, manifest_group_id, max_active_jobs });

/// Continues parked runs whose time has come, on a host, within limits: a parked run fills no place, so it needs one
/// again. What was kept of them is handed over and deleted.
pub async fn resume_ready(
    tx: &mut Tx<'_>,
    host: &Host,
    limit: usize,
    capacity: &mut Capacity,
) -> Result<Vec<Continued>, StoreError> {
    let now = tx.now().await?;
    let sql = tx.pick(READY);
    // Beyond those that may go on: those that limits hold back.
    let window = i64::try_from(limit.saturating_add(LOOK_AHEAD)).unwrap_or(i64::MAX);
    let ready: Vec<Ready> = on!(tx, |c| sqlx::query_as(sql).bind(now).bind(window).fetch_all(c))?;
    let mut continued = Vec::new();
    for run in ready {
        let (tenant, group) = (run.tenant_id, run.manifest_group_id);
        let is_full = |group| !capacity.has_room_in(group, run.max_active_jobs);
        if continued.len() == limit {
            break;
        }
        if capacity.room(tenant) == 0 || group.is_some_and(is_full) {
            continue;
        }
        let sql = "UPDATE metadata SET parked_at = NULL, claim_token = claim_token + 1,
            host_incarnation = $2,
                host_name = $3, host_environment = $4, host_instance_id = $5, host_labels = $6
            WHERE id = $1 AND train_state = 'in_progress' AND parked_at IS NOT NULL";
        let rows = execute!(
            tx,
            sqlx::query(sql)
                .bind(run.metadata_id)
                .bind(&host.incarnation)
                .bind(&host.name)
                .bind(&host.environment)
                .bind(&host.instance_id)
                .bind(&host.labels)
        )?;
        if rows == 1 {
            capacity.take(tenant, group);
            continued.push(take(tx, run.metadata_id).await?);
        }
    }
    Ok(continued)
}

async fn take(tx: &mut Tx<'_>, run: RunId) -> Result<Continued, StoreError> {
    let sql = "SELECT r.id AS run, r.claim_token, r.tenant_id, r.name, p.reason, p.node_id,
        p.memory, p.key_id
        FROM metadata r JOIN parked_run p ON p.metadata_id = r.id WHERE r.id = $1";
    let continued = on!(tx, |c| sqlx::query_as(sql).bind(run).fetch_one(c))?;
    execute!(tx, sqlx::query("DELETE FROM parked_run WHERE metadata_id = $1").bind(run))?;
    Ok(continued)
}
