-- Runs. Wide values live in `metadata_payload`, so that lists, counts and claims never touch them.
-- Tenants are not a foreign key here and in the tables below that grow with every run: on Postgres each insert would
-- lock the tenant's row in share mode.

CREATE TABLE IF NOT EXISTS metadata (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id BIGINT NOT NULL,
    parent_id BIGINT REFERENCES metadata (id),
    -- Several attempts at one queue entry share it.
    external_id TEXT NOT NULL,
    -- The train.
    name TEXT COLLATE "C" NOT NULL,
    train_state TEXT NOT NULL DEFAULT 'pending',
    failure_class TEXT NOT NULL DEFAULT 'unclassified',
    failure_junction TEXT,
    failure_exception TEXT,
    failure_reason TEXT,
    start_time TIMESTAMPTZ NOT NULL,
    end_time TIMESTAMPTZ,
    manifest_id BIGINT REFERENCES manifest (id),
    -- The occurrence it runs for: the anchor of a cron schedule after its success.
    scheduled_time TIMESTAMPTZ,
    -- Shared by retry, requeue and resume; part of the idempotency key.
    occurrence_id TEXT NOT NULL,
    component_version_id BIGINT REFERENCES component_version (id) ON DELETE SET NULL,
    subject_key TEXT,
    cancel_requested BOOLEAN NOT NULL DEFAULT FALSE,
    junction_started_at TIMESTAMPTZ,
    currently_running_junction TEXT,
    host_name TEXT,
    host_environment TEXT,
    host_instance_id TEXT,
    host_labels TEXT,
    -- The host that owns the run now, by incarnation; null: nobody does.
    host_incarnation TEXT,
    -- Goes up by one with every claim. A write that carries an older one changes nothing.
    claim_token BIGINT NOT NULL DEFAULT 0,
    -- Set while the run waits for a person, for capacity or for another host: then nobody owns it.
    parked_at TIMESTAMPTZ,
    decisions_recorded BOOLEAN NOT NULL DEFAULT FALSE,
    -- The run whose answers it replays, and the run it resumes. Not foreign keys: the link outlives that run.
    replay_decisions_of BIGINT,
    replay_abandoned BOOLEAN NOT NULL DEFAULT FALSE,
    resume_from BIGINT,
    resume_at TEXT,
    invoking_machine TEXT,
    CONSTRAINT ck_metadata_train_state CHECK (train_state IN
        ('pending', 'in_progress', 'completed', 'failed', 'cancelled')),
    CONSTRAINT ck_metadata_failure_class CHECK (failure_class IN
        ('unclassified', 'transient', 'conflict', 'permanent')),
    CONSTRAINT ck_metadata_end_time CHECK ((end_time IS NOT NULL) =
        (train_state IN ('completed', 'failed', 'cancelled'))),
    CONSTRAINT ck_metadata_parked_at CHECK (parked_at IS NULL OR
        (train_state = 'in_progress' AND host_incarnation IS NULL)),
    CONSTRAINT ck_metadata_external_id CHECK (LENGTH(external_id) = 32)
);
-- Lists page by key.
CREATE INDEX IF NOT EXISTS ix_metadata_tenant_id_id ON metadata (tenant_id, id);
CREATE INDEX IF NOT EXISTS ix_metadata_external_id ON metadata (tenant_id, external_id);
CREATE INDEX IF NOT EXISTS ix_metadata_manifest_id_id ON metadata (manifest_id, id) WHERE manifest_id IS NOT NULL;
-- What runs, per manifest and tenant: capacity, and whether a manifest is busy.
CREATE INDEX IF NOT EXISTS ix_metadata_active_capacity ON metadata (manifest_id, tenant_id, train_state)
    WHERE train_state IN ('pending', 'in_progress');
-- Who owns what runs: runs nobody has started, and runs of a host that is gone.
CREATE INDEX IF NOT EXISTS ix_metadata_active ON metadata (train_state, host_incarnation, id)
    WHERE train_state IN ('pending', 'in_progress') AND parked_at IS NULL;
-- One active run per subject.
CREATE UNIQUE INDEX IF NOT EXISTS ix_metadata_unique_active_subject ON metadata (tenant_id, subject_key)
    WHERE train_state IN ('pending', 'in_progress') AND subject_key IS NOT NULL;
CREATE INDEX IF NOT EXISTS ix_metadata_parked ON metadata (parked_at, id) WHERE parked_at IS NOT NULL;
-- Links, which cleanup and replay follow backwards.
CREATE INDEX IF NOT EXISTS ix_metadata_parent_id ON metadata (parent_id) WHERE parent_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS ix_metadata_replay_decisions_of ON metadata (replay_decisions_of)
    WHERE replay_decisions_of IS NOT NULL;
CREATE INDEX IF NOT EXISTS ix_metadata_resume_from ON metadata (resume_from) WHERE resume_from IS NOT NULL;
-- What only history needs covers finished rows only.
CREATE INDEX IF NOT EXISTS ix_metadata_component_version_id ON metadata (component_version_id)
    WHERE train_state IN ('completed', 'failed', 'cancelled');
CREATE INDEX IF NOT EXISTS ix_metadata_manifest_state ON metadata (manifest_id, start_time DESC, id DESC)
    WHERE train_state IN ('completed', 'failed', 'cancelled');
CREATE INDEX IF NOT EXISTS ix_metadata_manifest_failed ON metadata (manifest_id, start_time)
    WHERE train_state = 'failed';
CREATE INDEX IF NOT EXISTS ix_metadata_failure_class ON metadata (tenant_id, failure_class, id)
    WHERE train_state = 'failed';
CREATE INDEX IF NOT EXISTS ix_metadata_cleanup ON metadata (tenant_id, name, start_time)
    WHERE train_state IN ('completed', 'failed', 'cancelled');

CREATE TABLE IF NOT EXISTS metadata_payload (
    metadata_id BIGINT NOT NULL PRIMARY KEY REFERENCES metadata (id) ON DELETE CASCADE,
    -- Null when the run came out of the queue: its entry has the input.
    input TEXT,
    input_type_name TEXT,
    output TEXT,
    stack_trace TEXT
);
