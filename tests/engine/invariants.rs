//! What must hold after every case, whatever it did.

use crate::store::world::World;

/// Each names what must not be, and finds it: a query of text.
const NEVER: [(&str, &str); 9] = [
    (
        "two queued entries of one manifest",
        "SELECT CAST(manifest_id AS TEXT) FROM work_queue WHERE status = 'queued' AND manifest_id IS NOT NULL
         GROUP BY manifest_id HAVING COUNT(*) > 1",
    ),
    (
        "two active runs of one manifest",
        "SELECT CAST(manifest_id AS TEXT) FROM metadata WHERE train_state IN ('pending', 'in_progress')
         AND manifest_id IS NOT NULL GROUP BY manifest_id HAVING COUNT(*) > 1",
    ),
    (
        "a run in progress that nobody owns and that is not parked",
        "SELECT CAST(r.id AS TEXT) FROM metadata r WHERE r.train_state = 'in_progress' AND r.parked_at IS NULL
         AND NOT EXISTS (SELECT 1 FROM host h WHERE h.incarnation = r.host_incarnation AND h.left_at IS NULL)",
    ),
    (
        "a parked run without what it needs, or the reverse",
        "SELECT CAST(r.id AS TEXT) FROM metadata r LEFT JOIN parked_run p ON p.metadata_id = r.id
         WHERE (r.parked_at IS NULL) <> (p.metadata_id IS NULL)",
    ),
    (
        "a dead letter that awaits nobody and is linked to nothing",
        "SELECT CAST(d.id AS TEXT) FROM dead_letter d WHERE d.status = 'retried'
         AND NOT EXISTS (SELECT 1 FROM work_queue w WHERE w.id = d.work_queue_id)",
    ),
    (
        "two dead letters of one manifest that await somebody",
        "SELECT CAST(manifest_id AS TEXT) FROM dead_letter WHERE status = 'awaiting_intervention'
         GROUP BY manifest_id HAVING COUNT(*) > 1",
    ),
    (
        "a manifest that is due although something blocks it",
        "SELECT m.external_id FROM manifest m WHERE m.next_due_at IS NOT NULL AND (NOT m.is_enabled
         OR EXISTS (SELECT 1 FROM work_queue w WHERE w.manifest_id = m.id AND w.status = 'queued')
         OR EXISTS (SELECT 1 FROM metadata r WHERE r.manifest_id = m.id AND r.train_state IN ('pending', 'in_progress'))
         OR EXISTS (SELECT 1 FROM dead_letter d WHERE d.manifest_id = m.id AND d.status = 'awaiting_intervention'))",
    ),
    (
        "a manifest with an interval that nothing blocks and that is never due",
        "SELECT m.external_id FROM manifest m WHERE m.next_due_at IS NULL AND m.is_enabled
         AND m.schedule_type = 'interval'
         AND NOT EXISTS (SELECT 1 FROM work_queue w WHERE w.manifest_id = m.id AND w.status = 'queued')
         AND NOT EXISTS (SELECT 1 FROM metadata r WHERE r.manifest_id = m.id
            AND r.train_state IN ('pending', 'in_progress'))
         AND NOT EXISTS (SELECT 1 FROM dead_letter d
             WHERE d.manifest_id = m.id AND d.status = 'awaiting_intervention')",
    ),
    (
        "a dispatched entry without a run of its own",
        "SELECT CAST(w.id AS TEXT) FROM work_queue w WHERE w.status = 'dispatched' AND (w.metadata_id IS NULL
         OR 1 < (SELECT COUNT(*) FROM work_queue x WHERE x.metadata_id = w.metadata_id))",
    ),
];

/// Panics with what does not hold.
pub(crate) async fn hold(world: &World) {
    for (never, sql) in NEVER {
        let found = world.rows(sql).await;
        assert!(found.is_empty(), "{never}: {found:?}");
    }
}
