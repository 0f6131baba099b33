//! Loading a component from a file and verifying the trains it declares.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use crate::chain::Chain;
use crate::chain::declaration::Train;
use crate::chain::verify::verify;
use crate::guest::component::{Component, GuestHost};
use crate::model::limits::COMPONENT_BYTES_MAX;
use crate::operations::error::OperationError;

/// A component's file: its bytes, and what they came to.
pub struct Loaded {
    /// The bytes.
    pub wasm: Vec<u8>,
    /// What they compile to.
    pub component: Arc<Component>,
}

/// Loads a component.
///
/// # Errors
/// [`OperationError::File`], or [`OperationError::Refused`] with every reason.
pub async fn load(path: &Path, guests: &Arc<GuestHost>) -> Result<Loaded, OperationError> {
    let fail = |source| OperationError::File { path: path.to_owned(), source };
    let mut wasm = Vec::new();
    let file = File::open(path).map_err(fail)?;
    file.take(COMPONENT_BYTES_MAX as u64 + 1).read_to_end(&mut wasm).map_err(fail)?;
    let loaded = guests.load(&wasm).await;
    let component = loaded.map_err(|error| OperationError::load(path.to_owned(), error))?;
    Ok(Loaded { wasm, component })
}

/// Verifies every train of a component.
///
/// # Errors
/// Every fault of every train, each with the train's name before it.
pub fn chains(trains: &[Train]) -> Result<Vec<Chain>, Vec<String>> {
    let mut chains = Vec::new();
    let mut faults = Vec::new();
    for train in trains {
        match chain(train) {
            Ok(chain) => chains.push(chain),
            Err(more) => faults.extend(more),
        }
    }
    let mut seen = BTreeSet::new();
    for train in trains.iter().filter(|train| !seen.insert(&train.name)) {
        faults.push(format!("two trains are called '{}'; rename one", shown(&train.name)));
    }
    if faults.is_empty() { Ok(chains) } else { Err(faults) }
}

/// Verifies a train.
///
/// # Errors
/// Every fault, each with the train's name before it.
pub fn chain(train: &Train) -> Result<Chain, Vec<String>> {
    verify(train.clone()).map_err(|faults| {
        faults.iter().map(|fault| format!("{}: {fault}", shown(&train.name))).collect()
    })
}

/// A name that a guest chose, harmless to a terminal.
fn shown(name: &str) -> String {
    name.escape_debug().take(200).collect()
}
