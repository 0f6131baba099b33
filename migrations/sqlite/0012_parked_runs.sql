-- Memory of parked runs at the boundary they stopped at, encrypted; gone when the run continues.

CREATE TABLE IF NOT EXISTS parked_run (
    metadata_id INTEGER NOT NULL PRIMARY KEY REFERENCES metadata (id) ON DELETE CASCADE,
    reason TEXT NOT NULL,
    -- The node the run stands at; null: it has not begun.
    node_id TEXT,
    memory BLOB,
    -- The key the memory is encrypted with.
    key_id TEXT,
    -- When it may continue without being woken: a deadline, or at once when the host drained.
    wake_at INTEGER,
    parked_at INTEGER NOT NULL,
    CONSTRAINT ck_parked_run_reason CHECK (reason IN ('person', 'capacity', 'hand_over')),
    CONSTRAINT ck_parked_run_memory CHECK ((memory IS NULL) = (key_id IS NULL))
) STRICT;
CREATE INDEX IF NOT EXISTS ix_parked_run_wake_at ON parked_run (wake_at, metadata_id) WHERE wake_at IS NOT NULL;
