//! Deploying components: stored by content, and active or not at all.

use std::path::Path;
use std::sync::Arc;

use crate::guest::component::GuestHost;
use crate::model::ids::TenantId;
use crate::model::name::is_identifier;
use crate::operations::component_file::{self, Loaded};
use crate::operations::error::OperationError;
use crate::store::components::{self, NewTrain, NewVersion, Version};
use crate::store::{Db, StoreError, Tx};

/// A component that was checked, compiled and verified, and may be stored.
pub struct Checked {
    /// Its name: that of its file.
    pub name: String,
    wasm: Vec<u8>,
    trains: Vec<NewTrain>,
}

/// What deploying a component came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deployed {
    /// The version that is active now.
    pub version: Version,
    /// Whether it was active before.
    pub is_unchanged: bool,
    /// The names of its trains.
    pub trains: Vec<String>,
}

/// Checks a component's file.
///
/// # Errors
/// [`OperationError::File`], or [`OperationError::Refused`] with every reason.
pub async fn check(path: &Path, guests: &Arc<GuestHost>) -> Result<Checked, OperationError> {
    let refused = |reasons| OperationError::Refused { path: path.to_owned(), reasons };
    let name = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    if !is_identifier(name) {
        return Err(refused(
            "a component is called like its file: 1 to 100 of the letters a to z, digits, '_', '-' and '.'; \
             rename the file"
                .to_owned(),
        ));
    }
    let Loaded { wasm, component } = component_file::load(path, guests).await?;
    let chains =
        component_file::chains(component.trains()).map_err(|faults| refused(faults.join("\n")))?;
    let mut trains = Vec::new();
    for chain in &chains {
        let train = chain.train();
        let declaration = serde_json::to_string(train);
        trains.push(NewTrain {
            name: train.name.clone(),
            declaration: declaration.map_err(|source| OperationError::Declaration {
                train: train.name.clone(),
                source,
            })?,
            chain_hash: chain.hash().to_owned(),
        });
    }
    Ok(Checked { name: name.to_owned(), wasm, trains })
}

/// Stores a component and lets new runs use it.
///
/// # Errors
/// [`StoreError::Conflict`] when another active component has a train of the same name.
pub async fn deploy(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    checked: &Checked,
) -> Result<Deployed, StoreError> {
    let new = NewVersion {
        tenant,
        component: &checked.name,
        wasm: &checked.wasm,
        trains: &checked.trains,
    };
    let mut version = components::add_version(tx, &new).await?;
    let is_unchanged = version.is_active;
    if !is_unchanged {
        components::activate(tx, tenant, version.id).await?;
        version.is_active = true;
    }
    let trains = checked.trains.iter().map(|train| train.name.clone()).collect();
    Ok(Deployed { version, is_unchanged, trains })
}

/// Lets new runs use the version of a component that was active before, and says which that is.
///
/// # Errors
/// [`StoreError::NotFound`] when there is none.
pub async fn roll_back(
    db: &Db,
    tenant: TenantId,
    component: &str,
) -> Result<Version, OperationError> {
    db.write(async |tx| {
        let id = components::roll_back(tx, tenant, component).await?;
        let versions = components::versions(tx, tenant, component).await?;
        let found = versions.into_iter().find(|version| version.id == id);
        found.ok_or_else(|| {
            StoreError::NotFound { what: "component version", id: id.to_string() }.into()
        })
    })
    .await
}
