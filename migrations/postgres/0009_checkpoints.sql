-- Checkpoints: the state a run can resume from.

CREATE TABLE IF NOT EXISTS checkpoint (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    metadata_id BIGINT NOT NULL REFERENCES metadata (id) ON DELETE CASCADE,
    node_id TEXT NOT NULL,
    branch_path TEXT,
    state_type TEXT NOT NULL,
    state TEXT NOT NULL,
    tracks TEXT NOT NULL DEFAULT '[]',
    chain_hash TEXT NOT NULL,
    state_fingerprint TEXT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX IF NOT EXISTS uq_checkpoint_run_node ON checkpoint (metadata_id, node_id);
