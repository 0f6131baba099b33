-- Answers of deciders, each recorded before the run acts on it.

CREATE TABLE IF NOT EXISTS decision (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    metadata_id INTEGER NOT NULL REFERENCES metadata (id) ON DELETE CASCADE,
    branch_path TEXT NOT NULL DEFAULT '',
    question_key TEXT NOT NULL,
    occurrence INTEGER NOT NULL,
    -- The node a junction asked from; empty for a question the chain declares. Both count their occurrences apart.
    asked_by TEXT NOT NULL DEFAULT '',
    fingerprint TEXT NOT NULL,
    kind TEXT NOT NULL,
    question TEXT NOT NULL,
    answer TEXT,
    refused TEXT,
    model TEXT,
    decider TEXT,
    replayed INTEGER NOT NULL DEFAULT FALSE CHECK (replayed IN (FALSE, TRUE)),
    shadows TEXT,
    routes TEXT,
    state_hash TEXT,
    decided_at INTEGER NOT NULL,
    CONSTRAINT ck_decision_kind CHECK (kind IN ('choice', 'score', 'yes_no')),
    CONSTRAINT ck_decision_answer_or_refused CHECK (answer IS NOT NULL OR refused IS NOT NULL)
) STRICT;
CREATE UNIQUE INDEX IF NOT EXISTS uq_decision_run_branch_question ON decision
    (metadata_id, branch_path, question_key, occurrence, asked_by);
CREATE INDEX IF NOT EXISTS ix_decision_metadata_id_id ON decision (metadata_id, id);
