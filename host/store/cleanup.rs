//! Deleting finished runs that are old enough, a batch at a time, and none that a replay or a resume still needs.

use std::collections::{BTreeMap, BTreeSet};

use super::db::{Sql, Tx, execute, ids, of_ids, on};
use super::error::StoreError;
use super::manifests;
use super::types::row;
use crate::model::ids::{ManifestId, RunId, TenantId};
use crate::model::kinship::{self, Relative};
use crate::model::timestamp::Timestamp;

/// How many links away from a batch its relatives are looked for.
const ROUNDS_MAX: usize = 8;

/// Which runs are old enough.
#[derive(Debug, Clone, Copy)]
pub struct Expired<'a> {
    /// Whose.
    pub tenant: TenantId,
    /// Of which train.
    pub train: &'a str,
    /// Started before this.
    pub before: Timestamp,
}

/// Where a batch ended: the next one goes on behind it.
pub type Cursor = (Timestamp, RunId);

/// What a batch did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Swept {
    /// How many runs were deleted.
    pub deleted: u64,
    /// The manifests that runs were deleted of.
    pub manifests: Vec<ManifestId>,
    /// Where it ended; `None`: there was nothing left to look at.
    pub cursor: Option<Cursor>,
}

/// A run as a relative of others.
struct Found {
    id: RunId,
    manifest_id: Option<ManifestId>,
    replay_decisions_of: Option<RunId>,
    resume_from: Option<RunId>,
    is_expired: bool,
}

impl Found {
    /// The runs it names.
    fn named(&self) -> impl Iterator<Item = RunId> + use<> {
        [self.replay_decisions_of, self.resume_from].into_iter().flatten()
    }

    const fn relative(&self) -> Relative {
        Relative {
            id: self.id,
            replays: self.replay_decisions_of,
            resumes: self.resume_from,
            is_expired: self.is_expired,
        }
    }
}

row!(Found { id, manifest_id, replay_decisions_of, resume_from, is_expired });

/// A query for runs whose column is one of the ids that `$1` lists.
macro_rules! relatives {
    (@select) => {
        "SELECT id, manifest_id, replay_decisions_of, resume_from,
            (tenant_id = $2 AND name = $3 AND start_time < $4
            AND train_state IN ('completed', 'failed', 'cancelled')) AS is_expired
        FROM metadata WHERE "
    };
    ($column:literal) => {
        Sql {
            sqlite: concat!(relatives!(@select), $column, " IN (SELECT value FROM json_each($1))"),
            postgres: concat!(
                relatives!(@select),
                $column,
                " IN (SELECT CAST(value AS BIGINT)
                    FROM json_array_elements_text(CAST($1 AS JSON)))"
            ),
        }
    };
}

/// Deletes a batch of runs that are old enough, with everything of theirs.
///
/// # Errors
/// [`StoreError::Busy`] when one was linked to meanwhile: then nothing was deleted, and another try sees the link.
pub async fn sweep(
    tx: &mut Tx<'_>,
    expired: Expired<'_>,
    after: Option<Cursor>,
    limit: u32,
) -> Result<Swept, StoreError> {
    let batch = batch(tx, expired, after, limit).await?;
    let cursor = batch.last().copied();
    let family = family(tx, expired, batch.iter().map(|(_, id)| *id).collect()).await?;
    let all = ids(family.runs.keys().map(|id| id.0));
    let pinned = pinned(tx, &all).await?;
    let relatives: Vec<Relative> = family.runs.values().map(Found::relative).collect();
    let doomed = kinship::deletable(&relatives, &pinned, &family.open);
    if doomed.is_empty() {
        return Ok(Swept { deleted: 0, manifests: Vec::new(), cursor });
    }
    let of: BTreeSet<ManifestId> =
        doomed.iter().filter_map(|id| family.runs.get(id)?.manifest_id).collect();
    let manifests: Vec<ManifestId> = of.into_iter().collect();
    manifests::hold_all(tx, &manifests).await?;
    let deleted = delete(tx, &doomed).await?;
    Ok(Swept { deleted, manifests, cursor })
}

async fn batch(
    tx: &mut Tx<'_>,
    expired: Expired<'_>,
    after: Option<Cursor>,
    limit: u32,
) -> Result<Vec<Cursor>, StoreError> {
    let sql = "SELECT start_time, id FROM metadata
        WHERE tenant_id = $1 AND name = $2 AND train_state IN ('completed', 'failed', 'cancelled')
            AND start_time < $3 AND (start_time, id) > ($4, $5)
        ORDER BY start_time, id LIMIT $6";
    let (start_time, id) = after.unwrap_or((Timestamp::MIN, RunId(0)));
    on!(tx, |c| sqlx::query_as(sql)
        .bind(expired.tenant)
        .bind(expired.train)
        .bind(expired.before)
        .bind(start_time)
        .bind(id)
        .bind(i64::from(limit))
        .fetch_all(c))
}

/// Runs with everything that is linked to them.
struct Family {
    runs: BTreeMap<RunId, Found>,
    /// Those whose links were not followed any more.
    open: BTreeSet<RunId>,
}

async fn family(
    tx: &mut Tx<'_>,
    expired: Expired<'_>,
    batch: BTreeSet<RunId>,
) -> Result<Family, StoreError> {
    let mut runs: BTreeMap<RunId, Found> = BTreeMap::new();
    let mut followed: BTreeSet<RunId> = BTreeSet::new();
    let mut frontier = batch;
    for _ in 0..ROUNDS_MAX {
        if frontier.is_empty() {
            break;
        }
        let found = around(tx, expired, &frontier).await?;
        followed.append(&mut frontier);
        for run in found {
            let near = run.named().chain([run.id]);
            frontier.extend(near.filter(|id| !followed.contains(id)));
            runs.insert(run.id, run);
        }
    }
    let is_open = |run: &&Found| {
        frontier.contains(&run.id) || run.named().any(|named| frontier.contains(&named))
    };
    let open = runs.values().filter(is_open).map(|run| run.id).collect();
    Ok(Family { runs, open })
}

/// These runs, and those that name them.
async fn around(
    tx: &mut Tx<'_>,
    expired: Expired<'_>,
    of: &BTreeSet<RunId>,
) -> Result<Vec<Found>, StoreError> {
    let of = ids(of.iter().map(|id| id.0));
    let mut found = Vec::new();
    for sql in [
        relatives!("id"),
        relatives!("replay_decisions_of IS NOT NULL AND replay_decisions_of"),
        relatives!("resume_from IS NOT NULL AND resume_from"),
    ] {
        let sql = tx.pick(sql);
        let rows: Vec<Found> = on!(tx, |c| sqlx::query_as(sql)
            .bind(&of)
            .bind(expired.tenant)
            .bind(expired.train)
            .bind(expired.before)
            .fetch_all(c))?;
        found.extend(rows);
    }
    Ok(found)
}

/// Those of the runs that something queued names.
async fn pinned(tx: &mut Tx<'_>, runs: &str) -> Result<BTreeSet<RunId>, StoreError> {
    let mut pinned = BTreeSet::new();
    for sql in [
        of_ids!(
            "SELECT replay_decisions_of FROM work_queue
                WHERE status = 'queued' AND replay_decisions_of IS NOT NULL
                AND replay_decisions_of",
            ""
        ),
        of_ids!(
            "SELECT resume_from FROM work_queue
                WHERE status = 'queued' AND resume_from IS NOT NULL AND resume_from",
            ""
        ),
    ] {
        let sql = tx.pick(sql);
        let named: Vec<RunId> = on!(tx, |c| sqlx::query_scalar(sql).bind(runs).fetch_all(c))?;
        pinned.extend(named);
    }
    Ok(pinned)
}

/// Deletes runs that nothing else needs, with their entries; decisions, checkpoints, steps and lines go with them.
async fn delete(tx: &mut Tx<'_>, runs: &[RunId]) -> Result<u64, StoreError> {
    let all = ids(runs.iter().map(|id| id.0));
    for sql in [
        of_ids!(
            "UPDATE dead_letter SET retry_metadata_id = NULL WHERE retry_metadata_id IS NOT NULL
                AND retry_metadata_id",
            ""
        ),
        of_ids!(
            "UPDATE metadata SET parent_id = NULL WHERE parent_id IS NOT NULL AND parent_id",
            ""
        ),
        of_ids!("DELETE FROM work_queue WHERE metadata_id IS NOT NULL AND metadata_id", ""),
        of_ids!(
            "UPDATE work_queue SET resume_from = NULL, resume_at = NULL
                WHERE status <> 'queued' AND resume_from IS NOT NULL AND resume_from",
            ""
        ),
    ] {
        let sql = tx.pick(sql);
        execute!(tx, sqlx::query(sql).bind(&all))?;
    }
    // Looked at again: what was queued or claimed since the runs were chosen may name one of them.
    if !pinned(tx, &all).await?.is_empty() {
        return Err(StoreError::Busy(tx.place.clone()));
    }
    let sql = tx.pick(of_ids!("DELETE FROM metadata WHERE id", ""));
    let deleted = execute!(tx, sqlx::query(sql).bind(&all))?;
    let sql = tx.pick(of_ids!(
        "SELECT COUNT(*) FROM metadata WHERE replay_decisions_of IS NOT NULL
            AND replay_decisions_of",
        ""
    ));
    let replays: i64 = on!(tx, |c| sqlx::query_scalar(sql).bind(&all).fetch_one(c))?;
    let sql = tx.pick(of_ids!(
        "SELECT COUNT(*) FROM metadata WHERE resume_from IS NOT NULL AND resume_from",
        ""
    ));
    let resumes: i64 = on!(tx, |c| sqlx::query_scalar(sql).bind(&all).fetch_one(c))?;
    if replays + resumes > 0 {
        return Err(StoreError::Busy(tx.place.clone()));
    }
    Ok(deleted)
}
