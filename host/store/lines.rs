//! What runs that resume start from: the checkpoints of the run each resumes, and of the runs that one resumed.

use super::db::{Sql, Tx, execute, held, ids, on};
use super::error::StoreError;
use super::types::{TrainState, row};
use crate::model::ids::{Claim, EntryId, RunId, TenantId};

/// A run in the line of runs that another resumes, with one of its checkpoints if it has any.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// The run at the near end of the line.
    pub source: RunId,
    /// Its tenant.
    pub tenant: TenantId,
    /// Its train.
    pub train: String,
    /// The run.
    pub run: RunId,
    /// The node that the run resumed at, if it was told one.
    pub resume_at: Option<String>,
    /// A checkpoint of the run: its node.
    pub node_id: Option<String>,
    /// Of the chain it was written by.
    pub chain_hash: Option<String>,
    /// Of the state's shape.
    pub state_fingerprint: Option<String>,
    /// The tracks taken before it.
    pub tracks: Option<String>,
}

row!(Link {
    source,
    tenant,
    train,
    run,
    resume_at,
    node_id,
    chain_hash,
    state_fingerprint,
    tracks,
});

/// The databases differ in how a JSON array is a table. What leads back further than `$2` runs is cut off.
macro_rules! line {
    ($ids:literal, $columns:literal, $joins:literal) => {
        concat!(
            "WITH RECURSIVE line (source, tenant, train, run, resume_from, resume_at, level) AS (
                SELECT r.id, r.tenant_id, r.name, r.id, r.resume_from, r.resume_at, 1
                FROM metadata r WHERE r.id IN ",
            $ids,
            " UNION ALL
                SELECT l.source, l.tenant, l.train, r.id, r.resume_from, r.resume_at, l.level + 1
                FROM line l JOIN metadata r ON r.id = l.resume_from AND r.tenant_id = l.tenant
                WHERE l.level < $2)
            SELECT ",
            $columns,
            " FROM line l ",
            $joins
        )
    };
}

const OF_RUNS: Sql = Sql {
    sqlite: line!(
        "(SELECT value FROM json_each($1))",
        "l.source, l.tenant, l.train, l.run, l.resume_at, c.node_id, c.chain_hash,
            c.state_fingerprint, c.tracks",
        "LEFT JOIN checkpoint c ON c.metadata_id = l.run ORDER BY l.source, l.level, c.id"
    ),
    postgres: line!(
        "(SELECT CAST(value AS BIGINT) FROM json_array_elements_text(CAST($1 AS JSON)))",
        "l.source, l.tenant, l.train, l.run, l.resume_at, c.node_id, c.chain_hash,
            c.state_fingerprint, c.tracks",
        "LEFT JOIN checkpoint c ON c.metadata_id = l.run ORDER BY l.source, l.level, c.id"
    ),
};

const ROUTES: Sql = Sql {
    sqlite: line!(
        "(SELECT value FROM json_each($1))",
        "d.routes",
        "JOIN decision d ON d.metadata_id = l.run AND d.routes IS NOT NULL ORDER BY l.level, d.id"
    ),
    postgres: line!(
        "(SELECT CAST(value AS BIGINT) FROM json_array_elements_text(CAST($1 AS JSON)))",
        "d.routes",
        "JOIN decision d ON d.metadata_id = l.run AND d.routes IS NOT NULL ORDER BY l.level, d.id"
    ),
};

/// The lines of these runs, nearest runs first, each at most so many runs long; of each run its checkpoints in the
/// order they were written, without their states.
pub async fn of_runs(
    tx: &mut Tx<'_>,
    runs: &[RunId],
    runs_max: usize,
) -> Result<Vec<Link>, StoreError> {
    let sql = tx.pick(OF_RUNS);
    let ids = ids(runs.iter().map(|run| run.0));
    let most = i64::try_from(runs_max).unwrap_or(i64::MAX);
    on!(tx, |c| sqlx::query_as(sql).bind(&ids).bind(most).fetch_all(c))
}

/// What the decisions of a run, and of those it resumed, say of the tracks taken, nearest runs first.
pub async fn routes(
    tx: &mut Tx<'_>,
    run: RunId,
    runs_max: usize,
) -> Result<Vec<String>, StoreError> {
    let sql = tx.pick(ROUTES);
    let ids = ids([run.0].into_iter());
    let most = i64::try_from(runs_max).unwrap_or(i64::MAX);
    on!(tx, |c| sqlx::query_scalar(sql).bind(&ids).bind(most).fetch_all(c))
}

/// A stored state; none: the run has no checkpoint at the node any more.
pub async fn state(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    run: RunId,
    node_id: &str,
) -> Result<Option<String>, StoreError> {
    let sql = "SELECT c.state FROM checkpoint c JOIN metadata r ON r.id = c.metadata_id
        WHERE c.metadata_id = $2 AND c.node_id = $3 AND r.tenant_id = $1";
    on!(tx, |c| sqlx::query_scalar(sql).bind(tenant).bind(run).bind(node_id).fetch_optional(c))
}

/// A run that another is to resume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resumed {
    /// Its train.
    pub name: String,
    /// Its state.
    pub train_state: TrainState,
    /// Whether a run that resumed it has completed.
    pub is_resumed: bool,
    /// The entry that resumes it, if one is queued.
    pub queued: Option<EntryId>,
}

row!(Resumed { name, train_state, is_resumed, queued });

/// What is known of a run that another is to resume; none: this tenant has no such run.
pub async fn resumed(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    run: RunId,
) -> Result<Option<Resumed>, StoreError> {
    let sql = "SELECT r.name, r.train_state, EXISTS (SELECT 1 FROM metadata o
            WHERE o.resume_from = r.id AND o.train_state = 'completed') AS is_resumed,
            (SELECT w.id FROM work_queue w WHERE w.resume_from = r.id AND w.status = 'queued')
                AS queued
        FROM metadata r WHERE r.id = $2 AND r.tenant_id = $1";
    on!(tx, |c| sqlx::query_as(sql).bind(tenant).bind(run).fetch_optional(c))
}

/// Notes that a run starts at the top instead of resuming another.
pub async fn abandon(tx: &mut Tx<'_>, claim: Claim) -> Result<(), StoreError> {
    let sql = "UPDATE metadata SET resume_from = NULL, resume_at = NULL
        WHERE id = $1 AND claim_token = $2 AND train_state = 'in_progress' AND parked_at IS NULL";
    held(claim, execute!(tx, sqlx::query(sql).bind(claim.run).bind(claim.token))?)
}
