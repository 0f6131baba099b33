//! Compiled code on disk: kept under a seal, because running it is as trusted as running this program.
//!
//! A file is named by the component's content and by everything the code depends on, and starts with a MAC under a key
//! that only this folder's owner can read. A file with another seal is compiled again, and the log says why.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use thiserror::Error;

use crate::clock;

const KEY_BYTES: usize = 64;
const SEAL_BYTES: usize = 32;
const KEY_FILE: &str = "seal.key";

/// A folder of compiled code.
#[derive(Debug, Clone)]
pub struct CodeCache {
    folder: PathBuf,
    key: [u8; KEY_BYTES],
    compatibility: String,
}

/// The cache's folder cannot be used.
#[derive(Debug, Error)]
#[error("cannot use the folder of compiled code {}: {source}", .folder.display())]
pub struct CacheError {
    /// The folder.
    pub folder: PathBuf,
    /// Why not.
    pub source: io::Error,
}

/// Why there was no compiled code to be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Miss {
    /// It was never compiled under these settings.
    Absent,
    /// The file was changed, cut or written under another key.
    BadSeal,
    /// The file cannot be read.
    Unreadable,
}

impl CodeCache {
    /// Opens the folder, making it and its key if need be; only its owner can read either.
    ///
    /// # Errors
    /// [`CacheError`] names the folder.
    pub fn open(folder: &Path, compatibility: String) -> Result<Self, CacheError> {
        let fail = |source| CacheError { folder: folder.to_owned(), source };
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(fail)?;
        let key = key(folder).map_err(fail)?;
        Ok(Self { folder: folder.to_owned(), key, compatibility })
    }

    fn path(&self, digest: &str) -> PathBuf {
        self.folder.join(format!("{digest}-{}.cwasm", &self.compatibility[..16]))
    }

    fn mac(&self, digest: &str, code: &[u8]) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new(&self.key.into());
        for part in [digest.as_bytes(), self.compatibility.as_bytes()] {
            mac.update(&(part.len() as u64).to_le_bytes());
            mac.update(part);
        }
        mac.update(code);
        mac
    }

    /// The code of the component with this digest.
    ///
    /// # Errors
    /// [`Miss`] says why there is none.
    pub fn get(&self, digest: &str) -> Result<Vec<u8>, Miss> {
        let mut sealed = fs::read(self.path(digest)).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Miss::Absent,
            _ => Miss::Unreadable,
        })?;
        let (seal, code) = sealed.split_at_checked(SEAL_BYTES).ok_or(Miss::BadSeal)?;
        self.mac(digest, code).verify_slice(seal).map_err(|_| Miss::BadSeal)?;
        sealed.drain(..SEAL_BYTES);
        Ok(sealed)
    }

    /// Keeps code. Another process never sees half a file.
    ///
    /// # Errors
    /// [`CacheError`]; the caller can go on without.
    pub fn put(&self, digest: &str, code: &[u8]) -> Result<(), CacheError> {
        self.write(digest, code)
            .map_err(|source| CacheError { folder: self.folder.clone(), source })
    }

    fn write(&self, digest: &str, code: &[u8]) -> io::Result<()> {
        let draft = self.folder.join(format!("draft-{}", hex::encode(clock::random::<8>()?)));
        let written = create_private(&draft).and_then(|mut file| {
            file.write_all(&self.mac(digest, code).finalize().into_bytes())?;
            file.write_all(code)?;
            file.sync_all()?;
            fs::rename(&draft, self.path(digest))
        });
        if written.is_err() {
            let _ = fs::remove_file(&draft);
        }
        written
    }
}

fn create_private(path: &Path) -> io::Result<fs::File> {
    fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

/// The folder's key. Of two processes that make one at once, both use the one that was there first.
fn key(folder: &Path) -> io::Result<[u8; KEY_BYTES]> {
    let path = folder.join(KEY_FILE);
    if !path.exists() {
        let draft = folder.join(format!("draft-{}", hex::encode(clock::random::<8>()?)));
        let mut file = create_private(&draft)?;
        file.write_all(&clock::random::<KEY_BYTES>()?)?;
        file.sync_all()?;
        let linked = fs::hard_link(&draft, &path);
        fs::remove_file(&draft)?;
        if let Err(error) = linked
            && error.kind() != io::ErrorKind::AlreadyExists
        {
            return Err(error);
        }
    }
    fs::read(&path)?.try_into().map_err(|_| {
        let what = format!("{} is damaged; delete the folder", path.display());
        io::Error::new(io::ErrorKind::InvalidData, what)
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn open(folder: &Path, compatibility: &str) -> CodeCache {
        CodeCache::open(folder, compatibility.repeat(64)).unwrap()
    }

    #[test]
    fn code_is_found_again_only_under_the_same_name_settings_and_key() {
        let folder = tempfile::tempdir().unwrap();
        let cache = open(folder.path(), "a");
        assert_eq!(cache.get("d1"), Err(Miss::Absent));

        cache.put("d1", b"code").unwrap();

        assert_eq!(open(folder.path(), "a").get("d1").unwrap(), b"code");
        assert_eq!(cache.get("d2"), Err(Miss::Absent));
        assert_eq!(open(folder.path(), "b").get("d1"), Err(Miss::Absent));
        fs::remove_file(folder.path().join(KEY_FILE)).unwrap();
        assert_eq!(open(folder.path(), "a").get("d1"), Err(Miss::BadSeal));
    }

    #[test]
    fn changed_cut_or_swapped_code_is_never_given() {
        let folder = tempfile::tempdir().unwrap();
        let cache = open(folder.path(), "a");
        cache.put("d1", b"code").unwrap();
        let sealed = fs::read(cache.path("d1")).unwrap();
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            fs::write(cache.path("d1"), changed).unwrap();
            assert_eq!(cache.get("d1"), Err(Miss::BadSeal), "byte {at}");
        }
        for length in [0, SEAL_BYTES - 1, sealed.len() - 1] {
            fs::write(cache.path("d1"), &sealed[..length]).unwrap();
            assert_eq!(cache.get("d1"), Err(Miss::BadSeal), "cut to {length}");
        }
        fs::write(cache.path("d2"), &sealed).unwrap();
        assert_eq!(cache.get("d2"), Err(Miss::BadSeal));
    }

    #[test]
    fn only_the_owner_can_read_and_a_damaged_key_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let cache_folder = folder.path().join("a/b");
        let cache = open(&cache_folder, "a");
        cache.put("d1", b"code").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&cache_folder), 0o700);
        assert_eq!(mode(&cache_folder.join(KEY_FILE)), 0o600);
        assert_eq!(mode(&cache.path("d1")), 0o600);

        fs::write(cache_folder.join(KEY_FILE), b"short").unwrap();
        let error = CodeCache::open(&cache_folder, "a".repeat(64)).unwrap_err();
        assert!(error.source.to_string().contains("seal.key is damaged; delete the folder"));
    }
}
