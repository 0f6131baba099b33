-- What guests wrote to the log.

CREATE TABLE IF NOT EXISTS log (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    metadata_id BIGINT NOT NULL REFERENCES metadata (id) ON DELETE CASCADE,
    level TEXT NOT NULL,
    category TEXT NOT NULL,
    message TEXT NOT NULL,
    logged_at TIMESTAMPTZ NOT NULL,
    CONSTRAINT ck_log_level CHECK (level IN
        ('trace', 'debug', 'information', 'warning', 'error', 'critical', 'none'))
);
CREATE INDEX IF NOT EXISTS ix_log_metadata_id ON log (metadata_id, id);
