-- What each run did, node by node, for people who look at it.

CREATE TABLE IF NOT EXISTS junction_run (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    metadata_id BIGINT NOT NULL REFERENCES metadata (id) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    state TEXT NOT NULL,
    started_at TIMESTAMPTZ NOT NULL,
    ended_at TIMESTAMPTZ,
    failure_class TEXT,
    failure_exception TEXT,
    question_key TEXT,
    answer TEXT,
    confidence DOUBLE PRECISION,
    replayed BOOLEAN NOT NULL DEFAULT FALSE,
    node_id TEXT,
    branch_path TEXT,
    CONSTRAINT ck_junction_run_kind CHECK (kind IN ('junction', 'choice', 'score', 'yes_no', 'route')),
    CONSTRAINT ck_junction_run_state CHECK (state IN ('in_progress', 'completed', 'failed', 'cancelled')),
    CONSTRAINT ck_junction_run_failure_class CHECK (failure_class IN
        ('unclassified', 'transient', 'conflict', 'permanent')),
    CONSTRAINT ck_junction_run_ended_at CHECK ((ended_at IS NULL) = (state = 'in_progress'))
);
CREATE UNIQUE INDEX IF NOT EXISTS uq_junction_run_position ON junction_run (metadata_id, position);
