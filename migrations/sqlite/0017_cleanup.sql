-- Cleanup follows links of entries that left the queue.

CREATE INDEX IF NOT EXISTS ix_work_queue_resume_from ON work_queue (resume_from)
    WHERE status <> 'queued' AND resume_from IS NOT NULL;
