-- Components, addressed by content; their versions; the trains each version declares; what was active when.

CREATE TABLE IF NOT EXISTS component (
    tenant_id BIGINT NOT NULL REFERENCES tenant (id),
    -- SHA-256 of the wasm, in hex.
    content_hash TEXT NOT NULL,
    wasm BYTEA NOT NULL,
    created_at TIMESTAMPTZ NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, content_hash),
    CONSTRAINT ck_component_content_hash CHECK (LENGTH(content_hash) = 64)
);

CREATE TABLE IF NOT EXISTS component_version (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id BIGINT NOT NULL REFERENCES tenant (id),
    component_name TEXT NOT NULL,
    -- Counts from 1 for each component.
    version INTEGER NOT NULL,
    content_hash TEXT NOT NULL,
    is_active BOOLEAN NOT NULL DEFAULT FALSE,
    created_at TIMESTAMPTZ NOT NULL DEFAULT now(),
    FOREIGN KEY (tenant_id, content_hash) REFERENCES component (tenant_id, content_hash)
);
CREATE UNIQUE INDEX IF NOT EXISTS uq_component_version ON component_version (tenant_id, component_name, version);
CREATE UNIQUE INDEX IF NOT EXISTS ix_component_version_unique_active ON component_version (tenant_id, component_name)
    WHERE is_active;
CREATE INDEX IF NOT EXISTS ix_component_version_content_hash ON component_version (tenant_id, content_hash);

CREATE TABLE IF NOT EXISTS train (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id BIGINT NOT NULL REFERENCES tenant (id),
    component_version_id BIGINT NOT NULL REFERENCES component_version (id) ON DELETE CASCADE,
    name TEXT COLLATE "C" NOT NULL,
    -- Canonical JSON of the train's declaration, compared whenever the component is loaded.
    declaration TEXT NOT NULL,
    chain_hash TEXT NOT NULL,
    -- Whether its version is the active one: two active components cannot declare one train.
    is_active BOOLEAN NOT NULL DEFAULT FALSE
);
CREATE UNIQUE INDEX IF NOT EXISTS uq_train_version_name ON train (component_version_id, name);
CREATE UNIQUE INDEX IF NOT EXISTS ix_train_unique_active ON train (tenant_id, name) WHERE is_active;

CREATE TABLE IF NOT EXISTS component_activation (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id BIGINT NOT NULL REFERENCES tenant (id),
    component_name TEXT NOT NULL,
    component_version_id BIGINT NOT NULL REFERENCES component_version (id) ON DELETE CASCADE,
    activated_at TIMESTAMPTZ NOT NULL DEFAULT now()
);
CREATE INDEX IF NOT EXISTS ix_component_activation_name ON component_activation (tenant_id, component_name, id);
CREATE INDEX IF NOT EXISTS ix_component_activation_version ON component_activation (component_version_id);
