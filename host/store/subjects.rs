//! Subjects: an entry whose subject is busy leaves the order of dispatch until its turn comes, so that a claim looks at
//! it once, however many wait with it and however long.

use super::db::{Tx, execute, ids, of_ids};
use super::error::StoreError;
use crate::model::ids::{EntryId, TenantId};

/// Takes entries out of the order of dispatch until their subjects are free.
pub(super) async fn wait(tx: &mut Tx<'_>, entries: &[EntryId]) -> Result<(), StoreError> {
    if entries.is_empty() {
        return Ok(());
    }
    let sql = tx.pick(of_ids!(
        "UPDATE work_queue SET waits_for_subject = TRUE WHERE status = 'queued' AND id",
        ""
    ));
    let entries = ids(entries.iter().map(|entry| entry.0));
    execute!(tx, sqlx::query(sql).bind(entries))?;
    Ok(())
}

/// Puts the next entry of every subject that has become free back into the order of dispatch, unless another entry of
/// that subject stands in it. One step of an index for each subject that somebody waits for, however many do.
const RELEASE: &str = "WITH RECURSIVE waiting (subject_key) AS (
        SELECT (SELECT w.subject_key FROM work_queue w WHERE w.tenant_id = $1
            AND w.waits_for_subject = TRUE AND w.status = 'queued' AND w.subject_key IS NOT NULL
            ORDER BY w.subject_key LIMIT 1)
        UNION ALL
        SELECT (SELECT w.subject_key FROM work_queue w WHERE w.tenant_id = $1
            AND w.waits_for_subject = TRUE AND w.status = 'queued' AND w.subject_key IS NOT NULL
            AND w.subject_key > s.subject_key ORDER BY w.subject_key LIMIT 1)
        FROM waiting s WHERE s.subject_key IS NOT NULL)
    UPDATE work_queue SET waits_for_subject = FALSE WHERE id IN (
        SELECT (SELECT w.id FROM work_queue w WHERE w.tenant_id = $1
            AND w.waits_for_subject = TRUE AND w.status = 'queued' AND w.subject_key IS NOT NULL
            AND w.subject_key = s.subject_key
            ORDER BY w.group_priority DESC, w.priority DESC, w.created_at, w.id LIMIT 1)
        FROM waiting s WHERE s.subject_key IS NOT NULL
            AND NOT EXISTS (SELECT 1 FROM metadata r WHERE r.tenant_id = $1
                AND r.subject_key = s.subject_key AND r.subject_key IS NOT NULL
                AND r.train_state IN ('pending', 'in_progress'))
            AND NOT EXISTS (SELECT 1 FROM work_queue w WHERE w.tenant_id = $1
                AND w.waits_for_subject = FALSE AND w.status = 'queued'
                AND w.subject_key IS NOT NULL AND w.subject_key = s.subject_key
                AND w.confirmed_at IS NOT NULL
                AND (w.scheduled_at IS NULL OR w.scheduled_at <= $2)))";

/// Puts the next entry of every subject that has become free back into the order of dispatch.
pub(super) async fn release(tx: &mut Tx<'_>, tenant: TenantId) -> Result<(), StoreError> {
    let now = tx.now().await?;
    execute!(tx, sqlx::query(RELEASE).bind(tenant).bind(now))?;
    Ok(())
}
