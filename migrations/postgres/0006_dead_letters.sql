-- Dead letters: manifests that failed too often, until somebody requeues or acknowledges them.

CREATE TABLE IF NOT EXISTS dead_letter (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id BIGINT NOT NULL,
    manifest_id BIGINT NOT NULL REFERENCES manifest (id),
    dead_lettered_at TIMESTAMPTZ NOT NULL DEFAULT now(),
    status TEXT NOT NULL DEFAULT 'awaiting_intervention',
    resolved_at TIMESTAMPTZ,
    resolution_note TEXT,
    reason TEXT NOT NULL,
    retry_count_at_dead_letter INTEGER NOT NULL,
    retry_metadata_id BIGINT REFERENCES metadata (id),
    -- The entry it was requeued as, or folded into. Not a foreign key: entries refer to dead letters.
    work_queue_id BIGINT,
    CONSTRAINT ck_dead_letter_status CHECK (status IN
        ('awaiting_intervention', 'retried', 'acknowledged')),
    CONSTRAINT ck_dead_letter_resolved_at CHECK ((resolved_at IS NULL) = (status = 'awaiting_intervention')),
    CONSTRAINT ck_dead_letter_work_queue_id CHECK ((work_queue_id IS NOT NULL) = (status = 'retried'))
);
CREATE INDEX IF NOT EXISTS ix_dead_letter_manifest_id ON dead_letter (manifest_id, id);
CREATE INDEX IF NOT EXISTS ix_dead_letter_status ON dead_letter (tenant_id, manifest_id, id)
    WHERE status = 'awaiting_intervention';
CREATE INDEX IF NOT EXISTS ix_dead_letter_tenant_id_id ON dead_letter (tenant_id, id);
CREATE INDEX IF NOT EXISTS ix_dead_letter_resolved_at ON dead_letter (resolved_at) WHERE resolved_at IS NOT NULL;
CREATE INDEX IF NOT EXISTS ix_dead_letter_manifest_resolved ON dead_letter (manifest_id, resolved_at)
    WHERE resolved_at IS NOT NULL;
CREATE INDEX IF NOT EXISTS ix_dead_letter_retry_metadata_id ON dead_letter (retry_metadata_id)
    WHERE retry_metadata_id IS NOT NULL;
