-- Who may do what, and what they did.

CREATE TABLE IF NOT EXISTS api_token (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant_id INTEGER NOT NULL REFERENCES tenant (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    role TEXT NOT NULL,
    -- SHA-256 of the token in hex. The token itself is nowhere.
    hash TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER,
    last_used_at INTEGER,
    CONSTRAINT ck_api_token_role CHECK (role IN ('viewer', 'operator', 'author', 'admin')),
    CONSTRAINT ck_api_token_hash CHECK (LENGTH(hash) = 64)
) STRICT;
CREATE UNIQUE INDEX IF NOT EXISTS ix_api_token_hash ON api_token (hash);
CREATE UNIQUE INDEX IF NOT EXISTS ix_api_token_name ON api_token (tenant_id, name) WHERE revoked_at IS NULL;

CREATE TABLE IF NOT EXISTS audit (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant_id INTEGER NOT NULL,
    at INTEGER NOT NULL,
    who TEXT NOT NULL,
    -- The address or the machine it came from.
    origin TEXT NOT NULL,
    action TEXT NOT NULL,
    target TEXT NOT NULL,
    outcome TEXT NOT NULL,
    message TEXT NOT NULL,
    CONSTRAINT ck_audit_outcome CHECK (outcome IN ('done', 'refused', 'forbidden', 'failed'))
) STRICT;
CREATE INDEX IF NOT EXISTS ix_audit_tenant_id_id ON audit (tenant_id, id);
