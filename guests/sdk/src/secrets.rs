//! Secrets that the operator granted.

use crate::access::{self, AccessError};
use crate::bindings::trax::train::secrets;

/// A secret that is held by the host.
pub struct Secret {
    name: String,
    secret: secrets::Secret,
}

/// The secret of this name, which the train wants with `wants(|wants| wants.secret("..."))`.
pub fn get(name: &str) -> Result<Secret, AccessError> {
    let secret = secrets::get(name).map_err(access::of("secret", name))?;
    Ok(Secret { name: name.to_owned(), secret })
}

impl Secret {
    /// A stand-in that the host replaces in outbound requests to hosts that the secret is granted for.
    pub fn placeholder(&self) -> String {
        self.secret.placeholder()
    }

    /// The secret itself, where the grant allows that.
    pub fn reveal(&self) -> Result<String, AccessError> {
        self.secret.reveal().map_err(access::of("secret", &self.name))
    }
}
