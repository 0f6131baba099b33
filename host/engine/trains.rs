//! Trains ready to run: components that are loaded, and the chains verified from what they declare.
//!
//! Both are kept by the component's digest, so that a run costs the same however often its train ran before.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::OnceCell;

use crate::chain::Chain;
use crate::chain::verify::verify;
use crate::engine::error::EngineError;
use crate::guest::component::{Component, GuestHost, LoadError};
use crate::model::failure::Failure;
use crate::model::ids::{TenantId, VersionId};
use crate::store::{Db, StoreError, components};

/// The most components kept at once.
const KEPT_MAX: usize = 256;

/// A train that can run.
#[derive(Clone)]
pub struct Ready {
    /// The component that ships it.
    pub component: Arc<Component>,
    /// Its verified chain.
    pub chain: Arc<Chain>,
}

/// Loads trains and keeps them.
pub struct Trains {
    db: Db,
    guests: Arc<GuestHost>,
    kept: Mutex<HashMap<String, Arc<Loaded>>>,
}

impl fmt::Debug for Trains {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Trains")
    }
}

#[derive(Default)]
struct Loaded {
    component: OnceCell<Arc<Component>>,
    chains: Mutex<HashMap<String, Arc<Chain>>>,
}

/// Why a train does not run.
pub enum Unready {
    /// It cannot, now or later: the run fails.
    Failed(Failure),
    /// The host could not find out.
    Host(EngineError),
}

impl From<StoreError> for Unready {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NotFound { .. } => Self::Failed(Failure::permanent(
                "UnknownTrain",
                format!("{error}; deploy a component that declares it"),
            )),
            error => Self::Host(error.into()),
        }
    }
}

impl Trains {
    /// None yet.
    pub fn new(db: Db, guests: Arc<GuestHost>) -> Self {
        Self { db, guests, kept: Mutex::default() }
    }

    /// A train as a version declares it.
    ///
    /// # Errors
    /// [`Unready`] when it cannot run here.
    pub async fn ready(
        &self,
        tenant: TenantId,
        version: VersionId,
        name: &str,
    ) -> Result<Ready, Unready> {
        let mut tx = self.db.read().await?;
        let train = components::train_of_version(&mut tx, tenant, version, name).await?;
        drop(tx);
        let loaded = self.kept(&train.content_hash);
        let component =
            loaded.component.get_or_try_init(|| self.load(tenant, &train.content_hash)).await?;
        let chain = loaded.chain(component, name)?;
        if chain.hash() != train.chain_hash {
            return Err(Unready::Failed(Failure::permanent(
                "DeclarationChanged",
                format!(
                    "'{name}' declares another chain than when it was deployed; a declaration must depend on \
                     nothing, so build it from constants and deploy again"
                ),
            )));
        }
        Ok(Ready { component: Arc::clone(component), chain })
    }

    fn kept(&self, digest: &str) -> Arc<Loaded> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= KEPT_MAX && !kept.contains_key(digest) {
            // Runs in progress hold what they use.
            kept.clear();
        }
        Arc::clone(kept.entry(digest.to_owned()).or_default())
    }

    async fn load(&self, tenant: TenantId, digest: &str) -> Result<Arc<Component>, Unready> {
        let mut tx = self.db.read().await?;
        let wasm = components::wasm(&mut tx, tenant, digest).await?;
        drop(tx);
        self.guests.load(&wasm).await.map_err(|error| match error {
            LoadError::Host(error) => Unready::Host(error.into()),
            error => Unready::Failed(Failure::permanent("ComponentRefused", error.to_string())),
        })
    }
}

impl Loaded {
    fn chain(&self, component: &Component, name: &str) -> Result<Arc<Chain>, Unready> {
        let mut chains = self.chains.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(chain) = chains.get(name) {
            return Ok(Arc::clone(chain));
        }
        let refused = |why: String| Unready::Failed(Failure::permanent("ComponentRefused", why));
        let train = component.trains().iter().find(|train| train.name == name).cloned();
        let train = train.ok_or_else(|| refused(format!("it no longer declares '{name}'")))?;
        let chain = verify(train).map_err(|faults| {
            let faults: Vec<_> = faults.iter().map(|fault| format!("{name}: {fault}")).collect();
            refused(faults.join("\n"))
        })?;
        let chain = Arc::new(chain);
        chains.insert(name.to_owned(), Arc::clone(&chain));
        Ok(chain)
    }
}
