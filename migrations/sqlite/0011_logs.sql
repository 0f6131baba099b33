-- What guests wrote to the log.

CREATE TABLE IF NOT EXISTS log (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    metadata_id INTEGER NOT NULL REFERENCES metadata (id) ON DELETE CASCADE,
    level TEXT NOT NULL,
    category TEXT NOT NULL,
    message TEXT NOT NULL,
    logged_at INTEGER NOT NULL,
    CONSTRAINT ck_log_level CHECK (level IN
        ('trace', 'debug', 'information', 'warning', 'error', 'critical', 'none'))
) STRICT;
CREATE INDEX IF NOT EXISTS ix_log_metadata_id ON log (metadata_id, id);
