//! `trax:train/files`: directories to write to. None is granted by default, so no handle ever exists.

use std::convert::Infallible;

use wasmtime::component::Resource;

use crate::guest::bindings::trax::train::access::AccessError;
use crate::guest::bindings::trax::train::files::{FileInfo, Host, HostDirectory};
use crate::guest::state::State;

/// A granted directory.
pub struct Directory(Infallible);

type Access<T> = wasmtime::Result<Result<T, AccessError>>;

impl State {
    fn directory<T>(&mut self, directory: &Resource<Directory>) -> Access<T> {
        let directory = wasmtime_wasi::WasiView::ctx(self).table.get(directory)?;
        match directory.0 {}
    }
}

impl Host for State {
    fn open(&mut self, _name: String) -> Access<Resource<Directory>> {
        Ok(Err(AccessError::NotGranted))
    }
}

impl HostDirectory for State {
    fn info(&mut self, this: Resource<Directory>, _path: String) -> Access<FileInfo> {
        self.directory(&this)
    }

    fn entries(&mut self, this: Resource<Directory>, _path: String) -> Access<Vec<FileInfo>> {
        self.directory(&this)
    }

    fn read(
        &mut self,
        this: Resource<Directory>,
        _path: String,
        _offset: u64,
        _length: u32,
    ) -> Access<Vec<u8>> {
        self.directory(&this)
    }

    fn write(
        &mut self,
        this: Resource<Directory>,
        _path: String,
        _offset: u64,
        _bytes: Vec<u8>,
    ) -> Access<()> {
        self.directory(&this)
    }

    fn set_size(&mut self, this: Resource<Directory>, _path: String, _size: u64) -> Access<()> {
        self.directory(&this)
    }

    fn create_directory(&mut self, this: Resource<Directory>, _path: String) -> Access<()> {
        self.directory(&this)
    }

    fn rename(&mut self, this: Resource<Directory>, _path: String, _to: String) -> Access<()> {
        self.directory(&this)
    }

    fn remove(&mut self, this: Resource<Directory>, _path: String) -> Access<()> {
        self.directory(&this)
    }

    fn drop(&mut self, this: Resource<Directory>) -> wasmtime::Result<()> {
        wasmtime_wasi::WasiView::ctx(self).table.delete(this)?;
        Ok(())
    }
}
