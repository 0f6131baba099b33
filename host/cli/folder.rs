//! The components and the manifest file of a folder, and when they change.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use sha2::{Digest, Sha256};

use crate::cli::error::CliError;
use crate::clock::Clock;

/// The manifests of a folder.
const MANIFESTS: &str = "manifests.toml";

/// The time between two looks. A file has to stay as it is from one look to the next before it is read, so that none
/// is read half-written.
const INTERVAL: Duration = Duration::from_millis(300);

/// A folder that is watched.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    files: BTreeMap<PathBuf, Content>,
    /// What changed, and may still be changing.
    changing: Vec<PathBuf>,
}

/// What a file held when it was last looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Content {
    modified: Option<SystemTime>,
    bytes: u64,
    digest: [u8; 32],
}

impl Folder {
    /// A folder as it is now.
    ///
    /// # Errors
    /// [`CliError::File`] when it cannot be read, [`CliError::NotFound`] when no component is in it.
    pub fn open(path: &Path) -> Result<Self, CliError> {
        let mut folder =
            Self { path: path.to_owned(), files: BTreeMap::new(), changing: Vec::new() };
        folder.paths()?;
        folder.look();
        Ok(folder)
    }

    /// Its components, and its manifest file if there is one.
    ///
    /// # Errors
    /// [`CliError::File`] when the folder cannot be read, [`CliError::NotFound`] when no component is in it.
    pub fn paths(&self) -> Result<Vec<PathBuf>, CliError> {
        let fail = |source| CliError::File { path: self.path.clone(), source };
        let mut paths = Vec::new();
        for entry in fs::read_dir(&self.path).map_err(fail)? {
            let path = entry.map_err(fail)?.path();
            if path.extension().is_some_and(|extension| extension == "wasm") {
                paths.push(path);
            }
        }
        if paths.is_empty() {
            return Err(CliError::NotFound(format!(
                "there is no component (*.wasm) in {}; build one there, or name another folder",
                self.path.display()
            )));
        }
        paths.sort();
        let manifests = self.path.join(MANIFESTS);
        if manifests.exists() {
            paths.push(manifests);
        }
        Ok(paths)
    }

    /// Waits until files have changed and stay as they are, and gives their names. Dropped, it loses nothing.
    pub async fn changed(&mut self) -> Vec<String> {
        loop {
            Clock.sleep(INTERVAL).await;
            let changed = self.look();
            if changed.is_empty() && !self.changing.is_empty() {
                let changed = std::mem::take(&mut self.changing);
                return changed.iter().map(|path| name(path)).collect();
            }
            let new = changed.into_iter().filter(|path| !self.changing.contains(path));
            let new: Vec<_> = new.collect();
            self.changing.extend(new);
        }
    }

    /// Notes what the files hold, and gives those that are new, gone, or hold something else than before.
    fn look(&mut self) -> Vec<PathBuf> {
        // A folder without components, or one that cannot be read, has lost its files.
        let paths = self.paths().unwrap_or_default();
        let mut files = BTreeMap::new();
        for path in paths {
            if let Some(content) = read(&path, self.files.get(&path)) {
                files.insert(path, content);
            }
        }
        let differs = |path: &&PathBuf| {
            self.files.get(*path).map(|content| content.digest)
                != files.get(*path).map(|content| content.digest)
        };
        let mut changed: Vec<_> =
            self.files.keys().chain(files.keys()).filter(differs).cloned().collect();
        changed.sort();
        changed.dedup();
        self.files = files;
        changed
    }
}

/// What a file holds. It is read only if it looks touched since.
fn read(path: &Path, before: Option<&Content>) -> Option<Content> {
    let metadata = path.metadata().ok()?;
    let (modified, bytes) = (metadata.modified().ok(), metadata.len());
    let same = before.filter(|before| (before.modified, before.bytes) == (modified, bytes));
    if let Some(same) = same.filter(|same| same.modified.is_some()) {
        return Some(*same);
    }
    let digest = Sha256::digest(fs::read(path).ok()?).into();
    Some(Content { modified, bytes, digest })
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changed_is_what_holds_something_else() {
        let temporary = tempfile::tempdir().unwrap();
        let path = |name: &str| temporary.path().join(name);
        let write = |name: &str, text: &str| fs::write(path(name), text).unwrap();
        write("a.wasm", "1");
        write("notes.txt", "1");
        let mut folder = Folder::open(temporary.path()).unwrap();
        assert_eq!(folder.look(), [""; 0].map(PathBuf::from));

        write("a.wasm", "2 longer");
        write("b.wasm", "1");
        write("notes.txt", "2 longer");
        assert_eq!(folder.look(), [path("a.wasm"), path("b.wasm")]);
        write("a.wasm", "2 longer");
        assert_eq!(folder.look(), [""; 0].map(PathBuf::from));
        write(MANIFESTS, "1");
        fs::remove_file(path("b.wasm")).unwrap();
        assert_eq!(folder.look(), [path("b.wasm"), path(MANIFESTS)]);
        fs::remove_file(path(MANIFESTS)).unwrap();
        assert_eq!(folder.look(), [path(MANIFESTS)]);
    }
}
