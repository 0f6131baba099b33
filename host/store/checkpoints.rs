//! Checkpoints: one row for each node a run reached one at, until the run completes.

use super::db::{Tx, execute, fenced, held, on};
use super::error::StoreError;
use crate::model::ids::{Claim, RunId, TenantId};

/// A checkpoint to write.
#[derive(Debug, Clone)]
pub struct NewCheckpoint<'a> {
    /// The node.
    pub node_id: &'a str,
    /// The branch it is in, if any.
    pub branch_path: Option<&'a str>,
    /// The state's type, for people.
    pub state_type: &'a str,
    /// The state, as canonical JSON.
    pub state: &'a str,
    /// The tracks taken before it, as a JSON list.
    pub tracks: &'a str,
    /// Of the chain it was written by.
    pub chain_hash: &'a str,
    /// Of the state's shape.
    pub state_fingerprint: &'a str,
}

/// Writes a checkpoint. A run that continues at the node writes the same one again.
pub async fn record(
    tx: &mut Tx<'_>,
    claim: Claim,
    new: &NewCheckpoint<'_>,
) -> Result<(), StoreError> {
    let now = tx.now().await?;
    let sql = tx.pick(fenced!(
        "INSERT INTO checkpoint (metadata_id, node_id, branch_path, state_type, state, tracks,
            chain_hash,
            state_fingerprint, created_at)
        SELECT id, $3, $4, $5, $6, $7, $8, $9, $10",
        "ON CONFLICT (metadata_id, node_id) DO UPDATE
            SET state = excluded.state, tracks = excluded.tracks"
    ));
    let rows = execute!(
        tx,
        sqlx::query(sql)
            .bind(claim.run)
            .bind(claim.token)
            .bind(new.node_id)
            .bind(new.branch_path)
            .bind(new.state_type)
            .bind(new.state)
            .bind(new.tracks)
            .bind(new.chain_hash)
            .bind(new.state_fingerprint)
            .bind(now)
    )?;
    held(claim, rows)
}

/// The nodes at which a run has stored something and still has, in the order they were written.
pub async fn nodes_of_run(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    run: RunId,
) -> Result<Vec<String>, StoreError> {
    let sql = "SELECT c.node_id FROM checkpoint c JOIN metadata r ON r.id = c.metadata_id
        WHERE c.metadata_id = $2 AND r.tenant_id = $1 ORDER BY c.id";
    on!(tx, |c| sqlx::query_scalar(sql).bind(tenant).bind(run).fetch_all(c))
}

/// Deletes a run's checkpoints.
pub(super) async fn delete(tx: &mut Tx<'_>, run: RunId) -> Result<(), StoreError> {
    execute!(tx, sqlx::query("DELETE FROM checkpoint WHERE metadata_id = $1").bind(run))?;
    Ok(())
}
