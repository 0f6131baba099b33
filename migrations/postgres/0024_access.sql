-- Who may do what, and what they did.

CREATE TABLE IF NOT EXISTS api_token (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id BIGINT NOT NULL REFERENCES tenant (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    role TEXT NOT NULL,
    -- SHA-256 of the token in hex. The token itself is nowhere.
    hash TEXT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    expires_at TIMESTAMPTZ,
    revoked_at TIMESTAMPTZ,
    last_used_at TIMESTAMPTZ,
    CONSTRAINT ck_api_token_role CHECK (role IN ('viewer', 'operator', 'author', 'admin')),
    CONSTRAINT ck_api_token_hash CHECK (LENGTH(hash) = 64)
);
CREATE UNIQUE INDEX IF NOT EXISTS ix_api_token_hash ON api_token (hash);
CREATE UNIQUE INDEX IF NOT EXISTS ix_api_token_name ON api_token (tenant_id, name) WHERE revoked_at IS NULL;

CREATE TABLE IF NOT EXISTS audit (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id BIGINT NOT NULL,
    at TIMESTAMPTZ NOT NULL,
    who TEXT NOT NULL,
    -- The address or the machine it came from.
    origin TEXT NOT NULL,
    action TEXT NOT NULL,
    target TEXT NOT NULL,
    outcome TEXT NOT NULL,
    message TEXT NOT NULL,
    CONSTRAINT ck_audit_outcome CHECK (outcome IN ('done', 'refused', 'forbidden', 'failed'))
);
CREATE INDEX IF NOT EXISTS ix_audit_tenant_id_id ON audit (tenant_id, id);
