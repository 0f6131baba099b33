//! The names of tenants, by id: read once each, since a tenant keeps its name.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::model::ids::TenantId;
use crate::store::{StoreError, Tx, tenants};

/// The most names kept at once.
const KEPT_MAX: usize = 10_000;

/// Names that were read.
#[derive(Debug, Default)]
pub(in crate::engine) struct TenantNames(Mutex<HashMap<TenantId, Arc<str>>>);

impl TenantNames {
    /// The name of a tenant, if it was read.
    pub(in crate::engine) fn known(&self, tenant: TenantId) -> Option<Arc<str>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&tenant).cloned()
    }

    /// The name of a tenant.
    pub(in crate::engine) async fn name(
        &self,
        tx: &mut Tx<'_>,
        tenant: TenantId,
    ) -> Result<Arc<str>, StoreError> {
        if let Some(name) = self.known(tenant) {
            return Ok(name);
        }
        let name: Arc<str> = tenants::name_of(tx, tenant).await?.into();
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= KEPT_MAX {
            known.clear();
        }
        known.insert(tenant, Arc::clone(&name));
        Ok(name)
    }
}
