-- What schedules are measured from, and what tells quickly when a manifest was last cancelled.

-- The occurrence that the last successful run ran for: a cron counts from it. Null: no schedule made that run.
ALTER TABLE manifest ADD COLUMN IF NOT EXISTS last_successful_occurrence INTEGER;
CREATE INDEX IF NOT EXISTS ix_metadata_manifest_cancelled ON metadata (manifest_id, end_time)
    WHERE train_state = 'cancelled';
