//! Groups of manifests: shared limits, a shared priority, and one switch for all.

use super::db::{Tx, execute, on};
use super::error::StoreError;
use super::manifests::Setting;
use super::types::row;
use crate::model::ids::{GroupId, TenantId};

/// A group as it is stated. What is not stated stays as it is, or gets its default when new.
#[derive(Debug, Clone)]
pub struct GroupStatement<'a> {
    /// Whose it is.
    pub tenant: TenantId,
    /// Its name.
    pub name: &'a str,
    /// How many of its runs may be active. New: no limit.
    pub max_active_jobs: Setting<i32>,
    /// Groups of a higher one go first. New: 0.
    pub priority: Option<i16>,
    /// Whether anything of it is dispatched. New: yes.
    pub is_enabled: Option<bool>,
}

/// A stored group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Its id.
    pub id: GroupId,
    /// Its name.
    pub name: String,
    /// How many of its runs may be active.
    pub max_active_jobs: Option<i32>,
    /// Groups of a higher one go first.
    pub priority: i16,
    /// Whether anything of it is dispatched.
    pub is_enabled: bool,
}

row!(Group { id, name, max_active_jobs, priority, is_enabled });

/// Stores a group under its name, and gives its id.
pub async fn upsert(tx: &mut Tx<'_>, stated: &GroupStatement<'_>) -> Result<GroupId, StoreError> {
    let now = tx.now().await?;
    let (is_max_stated, max_active_jobs) = stated.max_active_jobs.into_parts();
    let sql = "INSERT INTO manifest_group
            (tenant_id, name, max_active_jobs, priority, is_enabled, created_at, updated_at)
        VALUES ($1, $2, $3, COALESCE($4, 0), COALESCE($5, TRUE), $6, $6)
        ON CONFLICT (tenant_id, name) DO UPDATE SET
            max_active_jobs = CASE WHEN $7 THEN $3 ELSE manifest_group.max_active_jobs END,
            priority = COALESCE($4, manifest_group.priority),
            is_enabled = COALESCE($5, manifest_group.is_enabled),
            updated_at = $6
        RETURNING id";
    let id = on!(tx, |c| sqlx::query_scalar(sql)
        .bind(stated.tenant)
        .bind(stated.name)
        .bind(max_active_jobs)
        .bind(stated.priority)
        .bind(stated.is_enabled)
        .bind(now)
        .bind(is_max_stated)
        .fetch_one(c))?;
    // Entries carry a copy of the priority, so that the order of dispatch is one index.
    let sql = "UPDATE work_queue SET group_priority = $2
        WHERE status = 'queued' AND group_priority <> $2
            AND manifest_id IN (SELECT id FROM manifest WHERE manifest_group_id = $1)";
    if let Some(priority) = stated.priority {
        execute!(tx, sqlx::query(sql).bind(id).bind(priority))?;
    }
    Ok(id)
}

/// A tenant's groups, by name.
pub async fn list(tx: &mut Tx<'_>, tenant: TenantId) -> Result<Vec<Group>, StoreError> {
    let sql = "SELECT id, name, max_active_jobs, priority, is_enabled FROM manifest_group
        WHERE tenant_id = $1 ORDER BY name";
    on!(tx, |c| sqlx::query_as(sql).bind(tenant).fetch_all(c))
}
