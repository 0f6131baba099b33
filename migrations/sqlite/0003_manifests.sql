-- Manifests, which say when a train runs, and their groups.

CREATE TABLE IF NOT EXISTS manifest_group (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant_id INTEGER NOT NULL REFERENCES tenant (id),
    name TEXT NOT NULL,
    max_active_jobs INTEGER,
    priority INTEGER NOT NULL DEFAULT 0,
    is_enabled INTEGER NOT NULL DEFAULT TRUE CHECK (is_enabled IN (FALSE, TRUE)),
    created_at INTEGER NOT NULL DEFAULT (CAST(unixepoch('now', 'subsec') * 1000 AS INTEGER) * 1000),
    updated_at INTEGER NOT NULL DEFAULT (CAST(unixepoch('now', 'subsec') * 1000 AS INTEGER) * 1000),
    CONSTRAINT ck_manifest_group_max_active_jobs CHECK (max_active_jobs >= 0)
) STRICT;
CREATE UNIQUE INDEX IF NOT EXISTS uq_manifest_group_name ON manifest_group (tenant_id, name);

CREATE TABLE IF NOT EXISTS manifest (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant_id INTEGER NOT NULL REFERENCES tenant (id),
    external_id TEXT NOT NULL,
    -- The train.
    name TEXT NOT NULL,
    property_type TEXT,
    -- The input of its runs, as canonical JSON.
    properties TEXT,
    is_enabled INTEGER NOT NULL DEFAULT TRUE CHECK (is_enabled IN (FALSE, TRUE)),
    schedule_type TEXT NOT NULL DEFAULT 'none',
    cron_expression TEXT,
    -- An IANA name.
    time_zone TEXT NOT NULL DEFAULT 'UTC',
    interval_seconds INTEGER,
    max_retries INTEGER NOT NULL DEFAULT 3,
    timeout_seconds INTEGER,
    last_successful_run INTEGER,
    depends_on_manifest_id INTEGER REFERENCES manifest (id) ON DELETE SET NULL,
    priority INTEGER NOT NULL DEFAULT 0,
    manifest_group_id INTEGER NOT NULL REFERENCES manifest_group (id),
    misfire_policy TEXT NOT NULL DEFAULT 'fire_once_now',
    misfire_threshold_seconds INTEGER,
    scheduled_at INTEGER,
    exclusions TEXT,
    variance_seconds INTEGER,
    next_scheduled_run INTEGER,
    failure_window_seconds INTEGER,
    owner TEXT,
    replay_decisions_on_retry INTEGER NOT NULL DEFAULT TRUE CHECK (replay_decisions_on_retry IN (FALSE, TRUE)),
    -- Which failures become a dead letter at once; null: none, only the count does.
    dead_letter_on TEXT,
    -- When the manifest is next due; null while something blocks it: a queued entry, an active run, a dead letter
    -- that awaits somebody, or that it is disabled.
    next_due_at INTEGER,
    CONSTRAINT ck_manifest_schedule_type CHECK (schedule_type IN
        ('none', 'cron', 'interval', 'on_demand', 'dependent', 'dormant_dependent', 'once')),
    CONSTRAINT ck_manifest_misfire_policy CHECK (misfire_policy IN ('fire_once_now', 'do_nothing')),
    CONSTRAINT ck_manifest_dead_letter_on CHECK (dead_letter_on IN ('permanent')),
    CONSTRAINT ck_manifest_failure_window_seconds_positive CHECK (failure_window_seconds > 0)
) STRICT;
CREATE UNIQUE INDEX IF NOT EXISTS ix_manifest_external_id ON manifest (tenant_id, external_id);
CREATE INDEX IF NOT EXISTS ix_manifest_next_due_at ON manifest (next_due_at, id) WHERE next_due_at IS NOT NULL;
CREATE INDEX IF NOT EXISTS ix_manifest_depends_on ON manifest (depends_on_manifest_id)
    WHERE depends_on_manifest_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS ix_manifest_manifest_group_id ON manifest (manifest_group_id);
CREATE INDEX IF NOT EXISTS ix_manifest_tenant_id_id ON manifest (tenant_id, id);
