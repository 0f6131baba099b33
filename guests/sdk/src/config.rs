//! Configuration values that the operator granted.

use crate::access::{self, AccessError};
use crate::bindings::trax::train::config;

/// The value of this name, which the train wants with `wants(|wants| wants.config("..."))`.
pub fn get(name: &str) -> Result<String, AccessError> {
    config::get(name).map_err(access::of("configuration value", name))
}
