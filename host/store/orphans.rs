//! Manifests that nobody states any more: found by their owner, and deleted with everything that belongs to them.

use super::db::{Sql, Tx, execute, on};
use super::error::StoreError;
use crate::model::ids::{GroupId, ManifestId, TenantId};

/// The manifests of a tenant that an owner stated: id and external id, by id.
pub async fn of_owner(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    owner: &str,
) -> Result<Vec<(ManifestId, String)>, StoreError> {
    let sql =
        "SELECT id, external_id FROM manifest WHERE tenant_id = $1 AND owner = $2 ORDER BY id";
    on!(tx, |c| sqlx::query_as(sql).bind(tenant).bind(owner).fetch_all(c))
}

/// What a call of [`delete`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deleted {
    /// A run of the manifest is pending or in progress, so nothing was deleted.
    Busy,
    /// As many of its runs as one transaction takes; there are more.
    Partly,
    /// The manifest, and all that belongs to it.
    Wholly,
}

/// Deletes a manifest with its entries, dead letters and finished runs, so many runs at a time, and its group once that
/// is empty. Runs that its runs started are kept, and manifests that depend on it no longer do.
///
/// # Errors
/// [`StoreError::NotFound`] when this tenant has none.
pub async fn delete(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    manifest: ManifestId,
    runs_max: u32,
) -> Result<Deleted, StoreError> {
    // Held until the end, so that no run of it starts meanwhile: a run refers to its manifest.
    let sql = tx.pick(Sql {
        sqlite: "SELECT manifest_group_id FROM manifest WHERE id = $2 AND tenant_id = $1",
        postgres: "SELECT manifest_group_id FROM manifest WHERE id = $2 AND tenant_id = $1 FOR UPDATE",
    });
    let group: Option<GroupId> =
        on!(tx, |c| sqlx::query_scalar(sql).bind(tenant).bind(manifest).fetch_optional(c))?;
    let not_found = || StoreError::NotFound { what: "manifest", id: manifest.to_string() };
    let group = group.ok_or_else(not_found)?;
    let sql = "SELECT EXISTS (SELECT 1 FROM metadata
        WHERE manifest_id = $1 AND train_state IN ('pending', 'in_progress'))";
    if on!(tx, |c| sqlx::query_scalar(sql).bind(manifest).fetch_one(c))? {
        return Ok(Deleted::Busy);
    }
    for sql in [
        "DELETE FROM work_queue WHERE manifest_id = $1 AND status = 'queued'",
        "UPDATE work_queue SET dead_letter_id = NULL
            WHERE dead_letter_id IN (SELECT id FROM dead_letter WHERE manifest_id = $1)",
        "DELETE FROM dead_letter WHERE manifest_id = $1",
        "UPDATE manifest SET depends_on_manifest_id = NULL WHERE depends_on_manifest_id = $1",
    ] {
        execute!(tx, sqlx::query(sql).bind(manifest))?;
    }
    for sql in [
        "UPDATE metadata SET parent_id = NULL WHERE parent_id IN
            (SELECT id FROM metadata WHERE manifest_id = $1 ORDER BY id LIMIT $2)",
        "DELETE FROM work_queue WHERE metadata_id IN
            (SELECT id FROM metadata WHERE manifest_id = $1 ORDER BY id LIMIT $2)",
    ] {
        execute!(tx, sqlx::query(sql).bind(manifest).bind(i64::from(runs_max)))?;
    }
    let sql = "DELETE FROM metadata WHERE id IN
        (SELECT id FROM metadata WHERE manifest_id = $1 ORDER BY id LIMIT $2)";
    let runs = execute!(tx, sqlx::query(sql).bind(manifest).bind(i64::from(runs_max)))?;
    if runs == u64::from(runs_max) {
        return Ok(Deleted::Partly);
    }
    for sql in [
        "DELETE FROM work_queue WHERE manifest_id = $1 AND status <> 'queued'",
        "DELETE FROM manifest WHERE id = $1",
    ] {
        execute!(tx, sqlx::query(sql).bind(manifest))?;
    }
    let sql = "DELETE FROM manifest_group WHERE id = $1
        AND NOT EXISTS (SELECT 1 FROM manifest WHERE manifest_group_id = $1)";
    execute!(tx, sqlx::query(sql).bind(group))?;
    Ok(Deleted::Wholly)
}
