-- Checkpoints: the state a run can resume from.

CREATE TABLE IF NOT EXISTS checkpoint (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    metadata_id INTEGER NOT NULL REFERENCES metadata (id) ON DELETE CASCADE,
    node_id TEXT NOT NULL,
    branch_path TEXT,
    state_type TEXT NOT NULL,
    state TEXT NOT NULL,
    tracks TEXT NOT NULL DEFAULT '[]',
    chain_hash TEXT NOT NULL,
    state_fingerprint TEXT NOT NULL,
    created_at INTEGER NOT NULL DEFAULT (CAST(unixepoch('now', 'subsec') * 1000 AS INTEGER) * 1000)
) STRICT;
CREATE UNIQUE INDEX IF NOT EXISTS uq_checkpoint_run_node ON checkpoint (metadata_id, node_id);
