//! Starting what runs guests, and loading a component for a command.

use std::env;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::cli::Global;
use crate::cli::error::CliError;
use crate::guest::compiler::CompileLimits;
use crate::guest::component::{Component, GuestConfig, GuestHost};
use crate::operations::component_file;

/// Starts what runs guests.
///
/// # Errors
/// [`CliError::Host`] when this machine cannot run any.
pub fn guests(global: &Global) -> Result<Arc<GuestHost>, CliError> {
    let program = env::current_exe()
        .map_err(|source| CliError::File { path: PathBuf::from("the trax binary"), source })?;
    Ok(GuestHost::start(GuestConfig {
        program,
        code_folder: global.code_folder.clone().or_else(default_code_folder),
        compile: CompileLimits::default(),
    })?)
}

/// Loads a component.
///
/// # Errors
/// [`CliError::Operation`] with every reason.
pub async fn component(path: &Path, global: &Global) -> Result<Arc<Component>, CliError> {
    Ok(component_file::load(path, &guests(global)?).await?.component)
}

/// Where compiled code is kept if nobody says so: in the user's cache, or nowhere.
fn default_code_folder() -> Option<PathBuf> {
    let cache = match env::var_os("XDG_CACHE_HOME") {
        Some(cache) => PathBuf::from(cache),
        None => PathBuf::from(env::var_os("HOME")?).join(".cache"),
    };
    cache.is_absolute().then(|| cache.join("trax").join("code"))
}
