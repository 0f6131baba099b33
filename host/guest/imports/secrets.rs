//! `trax:train/secrets`: secrets. None is granted by default, so no handle ever exists.

use std::convert::Infallible;

use wasmtime::component::Resource;

use crate::guest::bindings::trax::train::access::AccessError;
use crate::guest::bindings::trax::train::secrets::{Host, HostSecret};
use crate::guest::state::State;

/// A granted secret.
pub struct Secret(Infallible);

impl Host for State {
    fn get(&mut self, _name: String) -> wasmtime::Result<Result<Resource<Secret>, AccessError>> {
        Ok(Err(AccessError::NotGranted))
    }
}

impl HostSecret for State {
    fn placeholder(&mut self, secret: Resource<Secret>) -> wasmtime::Result<String> {
        let secret: &Secret = wasmtime_wasi::WasiView::ctx(self).table.get(&secret)?;
        match secret.0 {}
    }

    fn reveal(
        &mut self,
        secret: Resource<Secret>,
    ) -> wasmtime::Result<Result<String, AccessError>> {
        let secret: &Secret = wasmtime_wasi::WasiView::ctx(self).table.get(&secret)?;
        match secret.0 {}
    }

    fn drop(&mut self, secret: Resource<Secret>) -> wasmtime::Result<()> {
        wasmtime_wasi::WasiView::ctx(self).table.delete(secret)?;
        Ok(())
    }
}
