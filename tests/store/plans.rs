//! Query plans: every hot statement reads an index, on both databases, and active rows stay cheap to write.

use super::world::World;

/// Statements in the words of the store, and the index that each must read, or one of several.
const HOT: &[(&str, &str)] = &[
    (
        "ix_work_queue_dispatchable",
        "SELECT id FROM work_queue w WHERE w.tenant_id = 1 AND w.status = 'queued' AND w.confirmed_at IS NOT NULL
            AND w.scheduled_at IS NULL AND NOT w.waits_for_subject
        ORDER BY w.group_priority DESC, w.priority DESC, w.created_at, w.id LIMIT 10",
    ),
    (
        "ix_work_queue_scheduled_at",
        "SELECT id FROM work_queue w WHERE w.tenant_id = 1 AND w.status = 'queued' AND w.confirmed_at IS NOT NULL
            AND w.scheduled_at IS NOT NULL AND w.scheduled_at <= {now}",
    ),
    (
        "ix_work_queue_unique_queued_manifest",
        "SELECT id FROM work_queue WHERE manifest_id = 1 AND status = 'queued'",
    ),
    (
        "ix_work_queue_unique_queued_replay",
        "SELECT id FROM work_queue WHERE replay_decisions_of = 1 AND status = 'queued'",
    ),
    (
        "ix_work_queue_unique_queued_resume",
        "SELECT id FROM work_queue WHERE resume_from = 1 AND status = 'queued'",
    ),
    (
        "ix_metadata_unique_active_subject",
        "SELECT 1 FROM metadata r WHERE r.tenant_id = 1 AND r.subject_key = 'k'
            AND r.train_state IN ('pending', 'in_progress') AND r.subject_key IS NOT NULL",
    ),
    (
        "ix_metadata_active_capacity",
        "SELECT 1 FROM metadata WHERE manifest_id = 1 AND train_state IN ('pending', 'in_progress')",
    ),
    (
        "ix_metadata_active",
        "SELECT id FROM metadata WHERE train_state IN ('pending', 'in_progress') AND parked_at IS NULL
            AND host_incarnation IS NULL AND train_state = 'pending' ORDER BY id LIMIT 10",
    ),
    (
        "ix_metadata_manifest_failed",
        "SELECT id FROM metadata r WHERE r.manifest_id = 1 AND r.train_state = 'failed' AND r.start_time >= {now}",
    ),
    (
        "ix_metadata_manifest_state",
        "SELECT id FROM metadata WHERE manifest_id = 1 AND train_state IN ('completed', 'failed', 'cancelled')
        ORDER BY start_time DESC, id DESC LIMIT 1",
    ),
    (
        "ix_metadata_replay_decisions_of",
        "SELECT 1 FROM metadata r WHERE r.replay_decisions_of = 1 AND NOT r.replay_abandoned",
    ),
    (
        "ix_metadata_tenant_id_id",
        "SELECT id FROM metadata WHERE tenant_id = 1 AND id < 100 ORDER BY id DESC LIMIT 10",
    ),
    (
        "ix_manifest_next_due_at",
        "SELECT id FROM manifest WHERE next_due_at IS NOT NULL AND next_due_at <= {now} ORDER BY next_due_at, id LIMIT 9",
    ),
    (
        "ix_dead_letter_status",
        "SELECT manifest_id, MAX(id) FROM dead_letter WHERE tenant_id = 1 AND status = 'awaiting_intervention'
            AND manifest_id > 1 GROUP BY manifest_id ORDER BY manifest_id LIMIT 9",
    ),
    (
        // Of a few thousand rows Postgres may as well read all that were resolved.
        "ix_dead_letter_manifest_resolved|ix_dead_letter_resolved_at",
        "SELECT 1 FROM dead_letter d WHERE d.manifest_id = 1 AND d.resolved_at IS NOT NULL AND d.resolved_at >= {now}",
    ),
    ("ix_work_queue_metadata_id", "SELECT id FROM work_queue WHERE metadata_id = 1"),
    ("uq_checkpoint_run_node", "SELECT id FROM checkpoint WHERE metadata_id = 1"),
    ("ix_decision_metadata_id_id", "SELECT id FROM decision WHERE metadata_id = 1 AND id > 1 ORDER BY id LIMIT 9"),
    ("ix_log_metadata_id", "SELECT id FROM log WHERE metadata_id = 1 AND id > 1 ORDER BY id LIMIT 9"),
    (
        "ix_parked_run_wake_at",
        "SELECT metadata_id FROM parked_run WHERE wake_at IS NOT NULL AND wake_at <= {now}
        ORDER BY wake_at, metadata_id LIMIT 9",
    ),
    ("ix_host_heartbeat_at", "SELECT incarnation FROM host WHERE left_at IS NULL AND heartbeat_at > {now}"),
    ("ix_train_unique_active", "SELECT id FROM train WHERE tenant_id = 1 AND name = 'a' AND is_active"),
];

/// Enough rows, most of them history, that the databases have reason to tell the indexes apart.
pub(crate) const HISTORY: [&str; 4] = [
    "INSERT INTO metadata (tenant_id, external_id, name, train_state, start_time, end_time, manifest_id, occurrence_id,
            replay_decisions_of)
        WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40000)
        SELECT 1 + i % 200, '0123456789abcdef0123456789abcdef', 'train',
            CASE WHEN i % 100 = 1 THEN 'pending' WHEN i % 100 = 2 THEN 'in_progress' WHEN i % 4 = 0 THEN 'failed'
                ELSE 'completed' END,
            {now}, CASE WHEN i % 100 IN (1, 2) THEN NULL ELSE {now} END, 1 + i % 20, 'o',
            CASE WHEN i % 7 = 0 THEN i END
        FROM n",
    "INSERT INTO dead_letter (tenant_id, manifest_id, reason, retry_count_at_dead_letter, status, resolved_at)
        WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4000)
        SELECT 1, 1 + i / 201, 'r', 4, CASE WHEN i % 7 = 0 THEN 'acknowledged' ELSE 'awaiting_intervention' END,
            CASE WHEN i % 7 = 0 THEN {now} END
        FROM n",
    "INSERT INTO work_queue (tenant_id, external_id, train_name, occurrence_id, status, dispatched_at, scheduled_at)
        WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40000)
        SELECT 1, CAST(10000000 + i AS TEXT) || '0123456789abcdef01234567', 'train', 'o',
            CASE WHEN i % 20 = 0 THEN 'queued' ELSE 'dispatched' END,
            CASE WHEN i % 20 = 0 THEN NULL ELSE {now} END, CASE WHEN i % 40 = 0 THEN {now} END
        FROM n",
    "INSERT INTO checkpoint (metadata_id, node_id, state_type, state, chain_hash, state_fingerprint)
        SELECT id, 'Checkpoint<S>#0', 'S', '{}', 'c', 's' FROM metadata WHERE train_state = 'failed'",
];

/// S1: the hot statements read the index that is meant for them, not the table.
async fn hot_statements_read_their_index(w: World) {
    let is_postgres = w.db.is_postgres();
    let (now, before) =
        if is_postgres { ("now()", "now() - INTERVAL '1 day'") } else { ("2", "1") };
    for n in 0..20 {
        w.manifest(&format!("m{n}")).await;
    }
    for rows in HISTORY {
        w.sql(&rows.replace("{now}", now)).await.unwrap();
    }
    w.sql("ANALYZE").await.unwrap();
    let mut tx = w.db.begin().await.unwrap();
    if is_postgres {
        // Tables of a test are so small that reading them whole would be right.
        tx.execute_text("SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off")
            .await
            .unwrap();
    }
    let mut wrong = Vec::new();
    for (index, sql) in HOT {
        let lines = tx.plan(&sql.replace("{now}", before)).await.unwrap();
        // So that a name at the end of a line has something after it.
        let plan = lines.join(" \n") + " ";
        if !index.split('|').any(|index| plan.contains(&format!("{index} "))) {
            wrong.push(format!("{index}:\n{plan}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// Foreign keys that deletes follow, by table and column.
const FOREIGN_KEYS: &str = "SELECT CAST(t.relname AS TEXT), CAST(a.attname AS TEXT)
    FROM pg_constraint k JOIN pg_class t ON t.oid = k.conrelid JOIN pg_namespace s ON s.oid = t.relnamespace
    JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = k.conkey[1]
    WHERE k.contype = 'f' AND s.nspname = 'trax' AND a.attname <> 'tenant_id'
        AND NOT EXISTS (SELECT 1 FROM pg_index x WHERE x.indrelid = k.conrelid AND x.indkey[0] = k.conkey[1])";

/// S1: every foreign key that deletes go through backwards is the first column of an index.
async fn foreign_keys_are_indexed(w: World) {
    if w.db.is_postgres() {
        assert_eq!(w.rows(FOREIGN_KEYS).await, [""; 0]);
        return;
    }
    let missing = w
        .rows(
            "SELECT t.name, f.\"from\" FROM sqlite_schema t JOIN pragma_foreign_key_list(t.name) f
             WHERE t.type = 'table' AND f.\"from\" NOT IN ('tenant_id', 'content_hash') AND NOT EXISTS (
                SELECT 1 FROM pragma_index_list(t.name) i JOIN pragma_index_info(i.name) c
                WHERE c.seqno = 0 AND c.name = f.\"from\")
             AND NOT EXISTS (SELECT 1 FROM pragma_table_info(t.name) p WHERE p.name = f.\"from\" AND p.pk = 1)",
        )
        .await;
    assert_eq!(missing, [""; 0]);
}

/// The predicates of the partial indexes of a table, as SQL.
async fn predicates(w: &World, table: &str) -> Vec<String> {
    let sql = if w.db.is_postgres() {
        format!(
            "SELECT COALESCE(pg_get_expr(indpred, indrelid), 'TRUE') FROM pg_index
             WHERE indrelid = CAST('trax.{table}' AS REGCLASS)"
        )
    } else {
        // The primary key has no row here, and is one more.
        format!(
            "SELECT COALESCE(NULLIF(SUBSTR(sql, INSTR(sql || ' WHERE ', ' WHERE ') + 7), ''), 'TRUE')
             FROM sqlite_schema WHERE type = 'index' AND tbl_name = '{table}' AND sql IS NOT NULL
             UNION ALL SELECT 'TRUE'"
        )
    };
    w.rows(&sql).await
}

async fn an_active_row_is_in_six_indexes_at_most(w: World) {
    let host = w.host("one").await;
    let [a, b] = [w.manifest("a").await, w.manifest("b").await];
    w.entry(Some(a)).await;
    w.claim(&host, 1).await;
    w.entry(Some(b)).await;
    for (table, active) in
        [("work_queue", "status = 'queued'"), ("metadata", "train_state = 'in_progress'")]
    {
        let mut indexes = 0;
        for predicate in predicates(&w, table).await {
            let sql = format!(
                "SELECT CAST(COUNT(*) AS TEXT) FROM {table} WHERE {active} AND ({predicate})"
            );
            indexes += usize::from(w.rows(&sql).await == ["1"]);
        }
        assert!((1..=6).contains(&indexes), "{table} is in {indexes}");
    }
}

on_both!(
    hot_statements_read_their_index,
    foreign_keys_are_indexed,
    an_active_row_is_in_six_indexes_at_most,
);
