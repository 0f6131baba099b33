-- Tenants: everything else belongs to one. The first, `default`, always exists.

CREATE TABLE IF NOT EXISTS tenant (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL,
    created_at INTEGER NOT NULL DEFAULT (CAST(unixepoch('now', 'subsec') * 1000 AS INTEGER) * 1000),
    CONSTRAINT ck_tenant_name CHECK (name <> '')
) STRICT;
CREATE UNIQUE INDEX IF NOT EXISTS uq_tenant_name ON tenant (name);

INSERT INTO tenant (name) VALUES ('default') ON CONFLICT DO NOTHING;
