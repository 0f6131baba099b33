//! Loading a component from a file and verifying the trains it declares.

use std::env;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::chain::Chain;
use crate::chain::declaration::Train;
use crate::chain::verify::verify;
use crate::cli::Global;
use crate::cli::error::CliError;
use crate::guest::compiler::CompileLimits;
use crate::guest::component::{Component, GuestConfig, GuestHost};
use crate::model::limits::COMPONENT_BYTES_MAX;

/// Loads a component.
///
/// # Errors
/// [`CliError::File`], or [`CliError::Refused`] with every reason.
pub async fn component(path: &Path, global: &Global) -> Result<Arc<Component>, CliError> {
    let fail = |source| CliError::File { path: path.to_owned(), source };
    let mut wasm = Vec::new();
    let file = File::open(path).map_err(fail)?;
    file.take(COMPONENT_BYTES_MAX as u64 + 1).read_to_end(&mut wasm).map_err(fail)?;
    let host = GuestHost::start(GuestConfig {
        program: env::current_exe().map_err(fail)?,
        code_folder: global.code_folder.clone().or_else(default_code_folder),
        compile: CompileLimits::default(),
    })?;
    host.load(&wasm).await.map_err(|error| CliError::load(path.to_owned(), error))
}

/// Where compiled code is kept if nobody says so: in the user's cache, or nowhere.
fn default_code_folder() -> Option<PathBuf> {
    let cache = match env::var_os("XDG_CACHE_HOME") {
        Some(cache) => PathBuf::from(cache),
        None => PathBuf::from(env::var_os("HOME")?).join(".cache"),
    };
    cache.is_absolute().then(|| cache.join("trax").join("code"))
}

/// Verifies a train: the chain, or every fault, each with the train's name before it.
///
/// # Errors
/// The faults.
pub fn chain(train: &Train) -> Result<Chain, Vec<String>> {
    verify(train.clone()).map_err(|faults| {
        faults.iter().map(|fault| format!("{}: {fault}", shown(&train.name))).collect()
    })
}

/// A name that a guest chose, harmless to a terminal.
fn shown(name: &str) -> String {
    name.escape_debug().take(200).collect()
}
