//! The entries that go first, in the order in which they would.

use std::collections::BTreeSet;

use crate::model::ids::{EntryId, GroupId, TenantId};
use crate::model::timestamp::Timestamp;
use crate::store::db::{Sql, Tx, on};
use crate::store::error::StoreError;
use crate::store::types::row;

/// An entry that could go.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    pub(super) id: EntryId,
    pub(super) manifest_group_id: Option<GroupId>,
    pub(super) max_active_jobs: Option<i32>,
    pub(super) subject_key: Option<String>,
    pub(super) is_subject_busy: bool,
    pub(super) group_priority: i16,
    pub(super) priority: i16,
    pub(super) created_at: Timestamp,
}

row!(Candidate {
    id,
    manifest_group_id,
    max_active_jobs,
    subject_key,
    is_subject_busy,
    group_priority,
    priority,
    created_at,
});

impl Candidate {
    pub(super) fn order(&self) -> impl Ord + use<> {
        let first_is_highest = std::cmp::Reverse((self.group_priority, self.priority));
        (first_is_highest, self.created_at, self.id)
    }
}

/// A query for candidates. Postgres locks what it reads and leaves out what others have locked; SQLite has one writer.
macro_rules! candidates {
    ($scheduled:literal) => {
        Sql {
            sqlite: candidates!(@text $scheduled),
            postgres: concat!(candidates!(@text $scheduled), " FOR UPDATE OF w SKIP LOCKED"),
        }
    };
    (@text $scheduled:literal) => {
        concat!(
            "SELECT w.id, m.manifest_group_id, g.max_active_jobs, w.subject_key,
                w.group_priority, w.priority, w.created_at,
                w.subject_key IS NOT NULL AND EXISTS (SELECT 1 FROM metadata r
                    WHERE r.tenant_id = w.tenant_id AND r.subject_key = w.subject_key
                        AND r.train_state IN ('pending', 'in_progress')
                        AND r.subject_key IS NOT NULL) AS is_subject_busy
            FROM work_queue w
            LEFT JOIN manifest m ON m.id = w.manifest_id
            LEFT JOIN manifest_group g ON g.id = m.manifest_group_id
            WHERE w.tenant_id = $1 AND w.status = 'queued' AND w.confirmed_at IS NOT NULL
                AND (w.manifest_id IS NULL OR (g.is_enabled AND (m.is_enabled
                OR w.is_explicit_trigger)))
                AND NOT w.waits_for_subject
                -- The groups that are full, as text between commas.
                AND (m.manifest_group_id IS NULL
                    OR $3 NOT LIKE '%,' || CAST(m.manifest_group_id AS TEXT) || ',%')
                AND ",
            $scheduled,
            " ORDER BY w.group_priority DESC, w.priority DESC, w.created_at, w.id LIMIT $2"
        )
    };
}

const UNSCHEDULED: Sql = candidates!("w.scheduled_at IS NULL");
const SCHEDULED: Sql = candidates!("w.scheduled_at IS NOT NULL AND w.scheduled_at <= $4");

pub(super) async fn candidates(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    window: usize,
    full: &BTreeSet<GroupId>,
) -> Result<Vec<Candidate>, StoreError> {
    let now = tx.now().await?;
    let limit = i64::try_from(window).unwrap_or(i64::MAX);
    let full = full.iter().fold(",".to_owned(), |text, group| format!("{text}{group},"));
    let sql = tx.pick(UNSCHEDULED);
    let mut found: Vec<Candidate> =
        on!(tx, |c| sqlx::query_as(sql).bind(tenant).bind(limit).bind(&full).fetch_all(c))?;
    let sql = tx.pick(SCHEDULED);
    let due: Vec<Candidate> = on!(tx, |c| sqlx::query_as(sql)
        .bind(tenant)
        .bind(limit)
        .bind(&full)
        .bind(now)
        .fetch_all(c))?;
    found.extend(due);
    found.sort_by_key(Candidate::order);
    found.truncate(window);
    Ok(found)
}
