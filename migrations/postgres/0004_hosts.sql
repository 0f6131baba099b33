-- Hosts: each start of one is an incarnation, alive while it heartbeats.

CREATE TABLE IF NOT EXISTS host (
    -- Random, new at each start.
    incarnation TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    environment TEXT NOT NULL,
    instance_id TEXT NOT NULL,
    labels TEXT NOT NULL DEFAULT '{}',
    version TEXT NOT NULL,
    started_at TIMESTAMPTZ NOT NULL,
    heartbeat_at TIMESTAMPTZ NOT NULL,
    -- When it left of its own accord.
    left_at TIMESTAMPTZ
);
CREATE INDEX IF NOT EXISTS ix_host_heartbeat_at ON host (heartbeat_at) WHERE left_at IS NULL;
