//! Components by content, their versions, and the trains that are active.
//!
//! A version never changes. Which one is active does, and every change of that is kept, so that it can be undone.

use sha2::{Digest, Sha256};

use super::db::{LockKey, Tx, execute, on};
use super::error::StoreError;
use super::types::row;
use crate::model::ids::{TenantId, VersionId};
use crate::model::timestamp::Timestamp;

/// A component to deploy.
#[derive(Debug, Clone)]
pub struct NewVersion<'a> {
    /// Whose it is.
    pub tenant: TenantId,
    /// The component's name.
    pub component: &'a str,
    /// Its wasm, already checked.
    pub wasm: &'a [u8],
    /// What it declares, already verified.
    pub trains: &'a [NewTrain],
}

/// A train that a version declares.
#[derive(Debug, Clone)]
pub struct NewTrain {
    /// Its name, unique among the tenant's active trains.
    pub name: String,
    /// Its declaration as canonical JSON.
    pub declaration: String,
    /// The hash of its chain.
    pub chain_hash: String,
}

/// A version of a component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// Its id.
    pub id: VersionId,
    /// The component's name.
    pub component_name: String,
    /// Counts from 1 for each component.
    pub version: i32,
    /// SHA-256 of its wasm, in hex.
    pub content_hash: String,
    /// Whether new runs use it.
    pub is_active: bool,
    /// When it was deployed.
    pub created_at: Timestamp,
}

row!(Version { id, component_name, version, content_hash, is_active, created_at });

/// A train as a version declares it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Train {
    /// Its name.
    pub name: String,
    /// Which version declares it.
    pub component_version_id: VersionId,
    /// Where that version's wasm is.
    pub content_hash: String,
    /// Canonical JSON.
    pub declaration: String,
    /// The hash of its chain.
    pub chain_hash: String,
}

row!(Train { name, component_version_id, content_hash, declaration, chain_hash });

/// The hash a component is stored under.
pub fn content_hash(wasm: &[u8]) -> String {
    hex::encode(Sha256::digest(wasm))
}

/// Stores a version, not yet active. Deploying what the newest version already is gives that version.
pub async fn add_version(tx: &mut Tx<'_>, new: &NewVersion<'_>) -> Result<Version, StoreError> {
    tx.lock(LockKey::Deploy).await?;
    let now = tx.now().await?;
    let hash = content_hash(new.wasm);
    let newest = versions(tx, new.tenant, new.component).await?.into_iter().next();
    let number = match newest {
        Some(newest) if newest.content_hash == hash => return Ok(newest),
        Some(newest) => newest.version + 1,
        None => 1,
    };
    let sql =
        "INSERT INTO component (tenant_id, content_hash, wasm, created_at) VALUES ($1, $2, $3, $4)
        ON CONFLICT DO NOTHING";
    execute!(tx, sqlx::query(sql).bind(new.tenant).bind(&hash).bind(new.wasm).bind(now))?;
    let sql = "INSERT INTO component_version (tenant_id, component_name, version, content_hash,
        created_at)
        VALUES ($1, $2, $3, $4, $5)
        RETURNING id, component_name, version, content_hash, is_active, created_at";
    let version: Version = on!(tx, |c| sqlx::query_as(sql)
        .bind(new.tenant)
        .bind(new.component)
        .bind(number)
        .bind(&hash)
        .bind(now)
        .fetch_one(c))?;
    for train in new.trains {
        let sql =
            "INSERT INTO train (tenant_id, component_version_id, name, declaration, chain_hash)
            VALUES ($1, $2, $3, $4, $5)";
        execute!(
            tx,
            sqlx::query(sql)
                .bind(new.tenant)
                .bind(version.id)
                .bind(&train.name)
                .bind(&train.declaration)
                .bind(&train.chain_hash)
        )?;
    }
    Ok(version)
}

/// Lets new runs use a version, in place of the one of that component that they used.
///
/// # Errors
/// [`StoreError::Conflict`] when an active version of another component declares one of its trains.
pub async fn activate(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    version: VersionId,
) -> Result<(), StoreError> {
    tx.lock(LockKey::Deploy).await?;
    let now = tx.now().await?;
    let sql = "SELECT component_name FROM component_version WHERE tenant_id = $1 AND id = $2";
    let found = on!(tx, |c| sqlx::query_scalar(sql).bind(tenant).bind(version).fetch_optional(c))?;
    let component: String = found.ok_or_else(|| StoreError::NotFound {
        what: "component version",
        id: version.to_string(),
    })?;
    let sql = "UPDATE train SET is_active = FALSE WHERE tenant_id = $1 AND is_active
        AND component_version_id IN
            (SELECT id FROM component_version WHERE tenant_id = $1 AND component_name = $2)";
    execute!(tx, sqlx::query(sql).bind(tenant).bind(&component))?;
    let sql = "UPDATE component_version SET is_active = FALSE
        WHERE tenant_id = $1 AND component_name = $2 AND is_active";
    execute!(tx, sqlx::query(sql).bind(tenant).bind(&component))?;
    refuse_trains_of_others(tx, tenant, version).await?;
    let sql = "UPDATE component_version SET is_active = TRUE WHERE id = $1";
    execute!(tx, sqlx::query(sql).bind(version))?;
    let sql = "UPDATE train SET is_active = TRUE WHERE component_version_id = $1";
    execute!(tx, sqlx::query(sql).bind(version))?;
    let sql = "INSERT INTO component_activation (tenant_id, component_name, component_version_id,
        activated_at)
        VALUES ($1, $2, $3, $4)";
    execute!(tx, sqlx::query(sql).bind(tenant).bind(&component).bind(version).bind(now))?;
    Ok(())
}

async fn refuse_trains_of_others(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    version: VersionId,
) -> Result<(), StoreError> {
    let sql = "SELECT t.name, v.component_name FROM train t
        JOIN component_version v ON v.id = t.component_version_id
        WHERE t.tenant_id = $1 AND t.is_active
            AND t.name IN (SELECT name FROM train WHERE component_version_id = $2)
        ORDER BY t.name LIMIT 1";
    let taken: Option<(String, String)> =
        on!(tx, |c| sqlx::query_as(sql).bind(tenant).bind(version).fetch_optional(c))?;
    taken.map_or(Ok(()), |(name, component)| {
        let problem = format!("belongs to the active component '{component}'; rename one of them");
        Err(StoreError::Conflict { what: "train", name, problem })
    })
}

/// Undoes the last activation of a component: the version that was active before it is active again.
///
/// # Errors
/// [`StoreError::NotFound`] when no other version was active before.
pub async fn roll_back(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    component: &str,
) -> Result<VersionId, StoreError> {
    tx.lock(LockKey::Deploy).await?;
    let sql = "SELECT a.component_version_id FROM component_activation a
        JOIN component_version v ON v.id = a.component_version_id
        WHERE a.tenant_id = $1 AND a.component_name = $2 AND NOT v.is_active
        ORDER BY a.id DESC LIMIT 1";
    let found =
        on!(tx, |c| sqlx::query_scalar(sql).bind(tenant).bind(component).fetch_optional(c))?;
    let version = found.ok_or_else(|| StoreError::NotFound {
        what: "an earlier active version of component",
        id: format!("'{component}'"),
    })?;
    activate(tx, tenant, version).await?;
    Ok(version)
}

/// The versions of a component, newest first.
pub async fn versions(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    component: &str,
) -> Result<Vec<Version>, StoreError> {
    let sql = "SELECT id, component_name, version, content_hash, is_active, created_at
        FROM component_version
        WHERE tenant_id = $1 AND component_name = $2 ORDER BY version DESC";
    on!(tx, |c| sqlx::query_as(sql).bind(tenant).bind(component).fetch_all(c))
}

/// The wasm stored under a hash.
///
/// # Errors
/// [`StoreError::NotFound`] when this tenant has none.
pub async fn wasm(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    content_hash: &str,
) -> Result<Vec<u8>, StoreError> {
    let sql = "SELECT wasm FROM component WHERE tenant_id = $1 AND content_hash = $2";
    let found =
        on!(tx, |c| sqlx::query_scalar(sql).bind(tenant).bind(content_hash).fetch_optional(c))?;
    found.ok_or_else(|| StoreError::NotFound { what: "component", id: content_hash.to_owned() })
}

/// The train of that name that new runs use.
///
/// # Errors
/// [`StoreError::NotFound`] when no active component declares it.
pub async fn active_train(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    name: &str,
) -> Result<Train, StoreError> {
    let sql = "SELECT t.name, t.component_version_id, v.content_hash, t.declaration, t.chain_hash
        FROM train t JOIN component_version v ON v.id = t.component_version_id
        WHERE t.tenant_id = $1 AND t.name = $2 AND t.is_active";
    let found = on!(tx, |c| sqlx::query_as(sql).bind(tenant).bind(name).fetch_optional(c))?;
    found.ok_or_else(|| StoreError::NotFound { what: "train", id: format!("'{name}'") })
}

/// The train of that name as one version declares it: what a run that continues goes on with.
///
/// # Errors
/// [`StoreError::NotFound`] when the version declares no such train.
pub async fn train_of_version(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    version: VersionId,
    name: &str,
) -> Result<Train, StoreError> {
    let sql = "SELECT t.name, t.component_version_id, v.content_hash, t.declaration, t.chain_hash
        FROM train t JOIN component_version v ON v.id = t.component_version_id
        WHERE t.tenant_id = $1 AND t.component_version_id = $2 AND t.name = $3";
    let found =
        on!(tx, |c| sqlx::query_as(sql).bind(tenant).bind(version).bind(name).fetch_optional(c))?;
    found.ok_or_else(|| StoreError::NotFound { what: "train", id: format!("'{name}'") })
}

/// The active trains whose names come after `after`, by name.
pub async fn active_trains(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    after: &str,
    limit: u32,
) -> Result<Vec<Train>, StoreError> {
    let sql = "SELECT t.name, t.component_version_id, v.content_hash, t.declaration, t.chain_hash
        FROM train t JOIN component_version v ON v.id = t.component_version_id
        WHERE t.tenant_id = $1 AND t.is_active AND t.name > $2 ORDER BY t.name LIMIT $3";
    on!(tx, |c| sqlx::query_as(sql).bind(tenant).bind(after).bind(i64::from(limit)).fetch_all(c))
}
