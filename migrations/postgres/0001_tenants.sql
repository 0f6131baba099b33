-- Tenants: everything else belongs to one. The first, `default`, always exists.

CREATE TABLE IF NOT EXISTS tenant (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name TEXT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL DEFAULT now(),
    CONSTRAINT ck_tenant_name CHECK (name <> '')
);
CREATE UNIQUE INDEX IF NOT EXISTS uq_tenant_name ON tenant (name);

INSERT INTO tenant (name) VALUES ('default') ON CONFLICT DO NOTHING;
