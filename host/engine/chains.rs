//! The chains of deployed trains, verified from what was stored when they were deployed: for checks that run nothing.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use crate::chain::Chain;
use crate::chain::declaration::Train;
use crate::chain::verify::verify;
use crate::model::ids::TenantId;
use crate::store::components;
use crate::store::{StoreError, Tx};

/// The most chains kept at once.
const KEPT_MAX: usize = 256;

/// Chains that were read before, by the component's digest and the train's name.
#[derive(Default)]
pub struct Chains(Mutex<HashMap<(String, String), Arc<Chain>>>);

impl fmt::Debug for Chains {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Chains")
    }
}

/// The chain that new runs of a train walk.
#[derive(Debug, Clone)]
pub enum Active {
    /// This one.
    Chain(Arc<Chain>),
    /// No active component declares the train.
    Unknown,
    /// What was stored is no chain to this host.
    Unreadable,
}

impl Chains {
    /// The chain of a tenant's train of that name.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn active(
        &self,
        tx: &mut Tx<'_>,
        tenant: TenantId,
        name: &str,
    ) -> Result<Active, StoreError> {
        match components::active_train(tx, tenant, name).await {
            Ok(train) => Ok(self.read(&train)),
            Err(StoreError::NotFound { .. }) => Ok(Active::Unknown),
            Err(error) => Err(error),
        }
    }

    /// The chain of a train as it is stored.
    pub fn read(&self, train: &components::Train) -> Active {
        let key = (train.content_hash.clone(), train.name.clone());
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(chain) = kept.get(&key) {
            return Active::Chain(Arc::clone(chain));
        }
        let declared = serde_json::from_str::<Train>(&train.declaration).ok();
        let chain = declared.and_then(|train| verify(train).ok());
        let Some(chain) = chain.filter(|chain| chain.hash() == train.chain_hash) else {
            return Active::Unreadable;
        };
        if kept.len() >= KEPT_MAX {
            kept.clear();
        }
        let chain = Arc::new(chain);
        kept.insert(key, Arc::clone(&chain));
        Active::Chain(chain)
    }
}
