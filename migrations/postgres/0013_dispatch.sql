-- Dispatch: entries that wait for their subject, and what tenants may use.

ALTER TABLE tenant ADD COLUMN IF NOT EXISTS weight INTEGER NOT NULL DEFAULT 1 CHECK (weight >= 1);
ALTER TABLE tenant ADD COLUMN IF NOT EXISTS max_active_jobs INTEGER CHECK (max_active_jobs >= 0);
ALTER TABLE tenant ADD COLUMN IF NOT EXISTS max_queued_jobs INTEGER CHECK (max_queued_jobs >= 0);

-- Set by a claim that found the entry's subject busy; then the entry is not in the order of dispatch until the subject
-- is free and the entry is the next one of it.
ALTER TABLE work_queue ADD COLUMN IF NOT EXISTS waits_for_subject BOOLEAN NOT NULL DEFAULT FALSE;

DROP INDEX IF EXISTS ix_work_queue_dispatchable;
CREATE INDEX IF NOT EXISTS ix_work_queue_dispatchable ON work_queue
    (tenant_id, group_priority DESC, priority DESC, created_at, id)
    WHERE status = 'queued' AND confirmed_at IS NOT NULL AND scheduled_at IS NULL AND NOT waits_for_subject;
DROP INDEX IF EXISTS ix_work_queue_subject_queued;
CREATE INDEX IF NOT EXISTS ix_work_queue_subject_queued ON work_queue
    (tenant_id, waits_for_subject, subject_key, group_priority DESC, priority DESC, created_at, id)
    WHERE status = 'queued' AND subject_key IS NOT NULL;
