-- What each run did, node by node, for people who look at it.

CREATE TABLE IF NOT EXISTS junction_run (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    metadata_id INTEGER NOT NULL REFERENCES metadata (id) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    state TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    ended_at INTEGER,
    failure_class TEXT,
    failure_exception TEXT,
    question_key TEXT,
    answer TEXT,
    confidence REAL,
    replayed INTEGER NOT NULL DEFAULT FALSE CHECK (replayed IN (FALSE, TRUE)),
    node_id TEXT,
    branch_path TEXT,
    CONSTRAINT ck_junction_run_kind CHECK (kind IN ('junction', 'choice', 'score', 'yes_no', 'route')),
    CONSTRAINT ck_junction_run_state CHECK (state IN ('in_progress', 'completed', 'failed', 'cancelled')),
    CONSTRAINT ck_junction_run_failure_class CHECK (failure_class IN
        ('unclassified', 'transient', 'conflict', 'permanent')),
    CONSTRAINT ck_junction_run_ended_at CHECK ((ended_at IS NULL) = (state = 'in_progress'))
) STRICT;
CREATE UNIQUE INDEX IF NOT EXISTS uq_junction_run_position ON junction_run (metadata_id, position);
