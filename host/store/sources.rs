//! The runs that the next runs of manifests may take over from, a page of manifests in one statement.

use super::db::{Sql, Tx, ids, on};
use super::error::StoreError;
use super::types::row;
use crate::model::ids::ManifestId;
use crate::model::source::Source;

row!(Source {
    manifest,
    run,
    has_failed,
    start_time,
    failure_window_seconds,
    is_resolved,
    replay_decisions_on_retry,
    is_of_train,
    decisions_recorded,
    replay_decisions_of,
    replay_abandoned,
    is_replayed,
    is_fired_again,
    has_entry,
    has_subject_key,
    has_same_input,
    has_acted_on,
    has_checkpoint,
    resume_from,
    resume_at,
    invoking_machine,
    component_version_id,
});

/// What is known of the latest finished run of each manifest. The databases differ in how a JSON array is a table, and
/// SQLite is told the index by which the latest run is found: left to itself it sorts every run of the manifest.
macro_rules! sources {
    ($index:literal, $ids:literal) => {
        concat!(
            "SELECT m.id AS manifest, r.id AS run, r.train_state = 'failed' AS has_failed,
                r.start_time, m.failure_window_seconds,
                EXISTS (SELECT 1 FROM dead_letter d WHERE d.manifest_id = m.id
                    AND d.resolved_at IS NOT NULL AND d.resolved_at >= r.start_time)
                    AS is_resolved,
                m.replay_decisions_on_retry, r.name = m.name AS is_of_train, r.decisions_recorded,
                r.replay_decisions_of, r.replay_abandoned,
                (EXISTS (SELECT 1 FROM work_queue q WHERE q.replay_decisions_of = r.id
                        AND q.status = 'queued')
                    OR EXISTS (SELECT 1 FROM metadata o WHERE o.replay_decisions_of = r.id
                        AND NOT o.replay_abandoned
                        AND COALESCE(o.failure_exception, '') <> 'DispatchRequeued'))
                    AS is_replayed,
                COALESCE(p.last_successful_run > COALESCE(w.dispatched_at, r.start_time), FALSE)
                    AS is_fired_again,
                COALESCE(w.manifest_id = m.id, FALSE) AS has_entry,
                w.subject_key IS NOT NULL AS has_subject_key,
                (w.input IS NOT DISTINCT FROM m.properties
                    AND w.input_type_name IS NOT DISTINCT FROM m.property_type) AS has_same_input,
                EXISTS (SELECT 1 FROM decision a WHERE a.metadata_id = r.id
                    AND a.refused IS NULL) AS has_acted_on,
                -- Not EXISTS, for which Postgres may read every checkpoint.
                (SELECT 1 FROM checkpoint c WHERE c.metadata_id = r.id LIMIT 1) IS NOT NULL
                    AS has_checkpoint,
                r.resume_from, r.resume_at, r.invoking_machine, r.component_version_id
            FROM manifest m
            JOIN metadata r ON r.id = (SELECT l.id FROM metadata l ",
            $index,
            " WHERE l.manifest_id = m.id AND l.train_state IN ('completed', 'failed', 'cancelled')
                    AND COALESCE(l.failure_exception, '') <> 'DispatchRequeued'
                ORDER BY l.start_time DESC, l.id DESC LIMIT 1)
            LEFT JOIN manifest p ON p.id = m.depends_on_manifest_id
            LEFT JOIN work_queue w ON w.metadata_id = r.id
            WHERE m.id IN ",
            $ids,
            " ORDER BY m.id"
        )
    };
}
const SOURCES: Sql = Sql {
    sqlite: sources!("INDEXED BY ix_metadata_manifest_state", "(SELECT value FROM json_each($1))"),
    postgres: sources!(
        "",
        "(SELECT CAST(value AS BIGINT) FROM json_array_elements_text(CAST($1 AS JSON)))"
    ),
};

/// The latest finished run of each of these manifests that has one, by manifest. Inputs are compared as they are
/// stored, both sides by this one statement.
pub async fn of_manifests(
    tx: &mut Tx<'_>,
    manifests: &[ManifestId],
) -> Result<Vec<Source>, StoreError> {
    let sql = tx.pick(SOURCES);
    let ids = ids(manifests.iter().map(|id| id.0));
    on!(tx, |c| sqlx::query_as(sql).bind(&ids).fetch_all(c))
}
