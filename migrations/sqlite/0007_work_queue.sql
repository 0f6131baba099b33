-- The queue: what waits to run, and what each run came out of.

CREATE TABLE IF NOT EXISTS work_queue (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant_id INTEGER NOT NULL,
    external_id TEXT NOT NULL,
    train_name TEXT NOT NULL,
    -- Canonical JSON, compared byte by byte.
    input TEXT,
    input_type_name TEXT,
    status TEXT NOT NULL DEFAULT 'queued',
    manifest_id INTEGER REFERENCES manifest (id),
    metadata_id INTEGER REFERENCES metadata (id),
    created_at INTEGER NOT NULL DEFAULT (CAST(unixepoch('now', 'subsec') * 1000 AS INTEGER) * 1000),
    dispatched_at INTEGER,
    priority INTEGER NOT NULL DEFAULT 0,
    -- A copy of the group's, so that the order of dispatch is one index.
    group_priority INTEGER NOT NULL DEFAULT 0,
    scheduled_at INTEGER,
    -- The occurrence it runs for, copied to the run.
    scheduled_time INTEGER,
    occurrence_id TEXT NOT NULL,
    dispatch_attempts INTEGER NOT NULL DEFAULT 0,
    dead_letter_id INTEGER REFERENCES dead_letter (id),
    -- Null: staged, never claimed. The default lets rows of older writers be dispatched.
    confirmed_at INTEGER DEFAULT (CAST(unixepoch('now', 'subsec') * 1000 AS INTEGER) * 1000),
    subject_key TEXT,
    is_explicit_trigger INTEGER NOT NULL DEFAULT FALSE CHECK (is_explicit_trigger IN (FALSE, TRUE)),
    replay_decisions_of INTEGER,
    resume_from INTEGER,
    resume_at TEXT,
    invoking_machine TEXT,
    CONSTRAINT ck_work_queue_status CHECK (status IN ('queued', 'dispatched', 'cancelled')),
    CONSTRAINT ck_work_queue_dispatched CHECK ((dispatched_at IS NOT NULL) = (status = 'dispatched')),
    CONSTRAINT ck_work_queue_external_id CHECK (LENGTH(external_id) = 32)
) STRICT;
CREATE UNIQUE INDEX IF NOT EXISTS ix_work_queue_external_id ON work_queue (tenant_id, external_id);
CREATE UNIQUE INDEX IF NOT EXISTS ix_work_queue_unique_queued_manifest ON work_queue (manifest_id)
    WHERE status = 'queued' AND manifest_id IS NOT NULL;
CREATE UNIQUE INDEX IF NOT EXISTS ix_work_queue_unique_queued_replay ON work_queue (replay_decisions_of)
    WHERE status = 'queued' AND replay_decisions_of IS NOT NULL;
CREATE UNIQUE INDEX IF NOT EXISTS ix_work_queue_unique_queued_resume ON work_queue (resume_from)
    WHERE status = 'queued' AND resume_from IS NOT NULL;
-- The order of dispatch. Entries that wait for a time are not in it: a million of them cost a claim nothing.
CREATE INDEX IF NOT EXISTS ix_work_queue_dispatchable ON work_queue
    (tenant_id, group_priority DESC, priority DESC, created_at, id)
    WHERE status = 'queued' AND confirmed_at IS NOT NULL AND scheduled_at IS NULL;
CREATE INDEX IF NOT EXISTS ix_work_queue_scheduled_at ON work_queue (tenant_id, scheduled_at)
    WHERE status = 'queued' AND scheduled_at IS NOT NULL;
CREATE INDEX IF NOT EXISTS ix_work_queue_unconfirmed ON work_queue (created_at)
    WHERE status = 'queued' AND confirmed_at IS NULL;
CREATE INDEX IF NOT EXISTS ix_work_queue_cancelled_staged ON work_queue (created_at)
    WHERE status = 'cancelled' AND confirmed_at IS NULL;
CREATE INDEX IF NOT EXISTS ix_work_queue_subject_queued ON work_queue (tenant_id, subject_key)
    WHERE status = 'queued' AND subject_key IS NOT NULL;
CREATE INDEX IF NOT EXISTS ix_work_queue_tenant_id_id ON work_queue (tenant_id, id);
-- Back-references that deletes go through, for entries that left the queue.
CREATE INDEX IF NOT EXISTS ix_work_queue_manifest_id ON work_queue (manifest_id)
    WHERE status <> 'queued' AND manifest_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS ix_work_queue_metadata_id ON work_queue (metadata_id) WHERE metadata_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS ix_work_queue_dead_letter_id ON work_queue (dead_letter_id) WHERE dead_letter_id IS NOT NULL;
