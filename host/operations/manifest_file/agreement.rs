//! Files that are stated together agree on the groups that several of them state.

use std::collections::HashMap;

use crate::operations::error::OperationError;
use crate::operations::manifest_file::{ManifestFile, StatedGroup};
use crate::operations::table::Faults;
use crate::store::manifests::Setting;

/// Refuses files that state two values for one setting of a group, or one manifest twice.
///
/// # Errors
/// [`OperationError::Stated`] with every disagreement, which names both files.
pub fn agree(files: &[ManifestFile]) -> Result<(), OperationError> {
    let mut problems = Vec::new();
    let mut groups: HashMap<&str, Vec<(&ManifestFile, &StatedGroup)>> = HashMap::new();
    let mut manifests: HashMap<&str, &ManifestFile> = HashMap::new();
    for file in files {
        let (mut faults, mut whole) = (Faults::new(&file.path, &file.text), 0..0);
        for group in &file.groups {
            let others = groups.entry(&group.name).or_default();
            for (other, stated) in &*others {
                for setting in differing(stated, group) {
                    let what = format!("group '{}': {setting}", group.name.escape_debug());
                    let problem = format!(
                        "has another value in {}; state it in one of them",
                        other.path.display()
                    );
                    faults.add(&whole, what, problem);
                }
            }
            others.push((file, group));
        }
        for manifest in &file.manifests {
            if let Some(other) = manifests.insert(&manifest.id, file) {
                whole.clone_from(&manifest.train_place);
                let what = format!("manifest '{}'", manifest.id.escape_debug());
                let problem = format!("is stated in {} too; keep one", other.path.display());
                faults.add(&whole, what, problem);
            }
        }
        problems.extend(faults.into_text());
    }
    if problems.is_empty() { Ok(()) } else { Err(OperationError::Stated(problems.join("\n"))) }
}

/// The settings that both state, and not alike.
fn differing(one: &StatedGroup, other: &StatedGroup) -> Vec<&'static str> {
    let both_stated = |one: Setting<i32>, other: Setting<i32>| {
        one != Setting::Keep && other != Setting::Keep && one != other
    };
    let settings = [
        ("max_active_jobs", both_stated(one.max_active_jobs, other.max_active_jobs)),
        ("priority", matches!((one.priority, other.priority), (Some(a), Some(b)) if a != b)),
        ("enabled", matches!((one.is_enabled, other.is_enabled), (Some(a), Some(b)) if a != b)),
    ];
    settings.into_iter().filter(|(_, differs)| *differs).map(|(name, _)| name).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::operations::manifest_file::parse;

    fn told(texts: &[(&str, &str)]) -> String {
        let read =
            |(name, text): &(&str, &str)| parse(Path::new(name), (*text).to_owned()).unwrap();
        let files: Vec<_> = texts.iter().map(read).collect();
        agree(&files).map_or_else(|error| error.to_string(), |()| String::new())
    }

    /// M29: files that state different values for one setting of a group are refused, and both are named.
    #[test]
    fn files_agree_on_their_groups() {
        let group = "[[group]]\nname = \"g\"\n";
        let one = format!("{group}priority = 3\nmax_active_jobs = 2\n");
        let alike = format!("{group}priority = 3\nenabled = true\n");
        let other = format!("{group}priority = 4\nmax_active_jobs = \"none\"\n");
        assert_eq!(told(&[("a.toml", &one), ("b.toml", &alike)]), "");
        let found = told(&[("a.toml", &one), ("b.toml", &other)]);
        assert_eq!(
            found.trim_end(),
            "b.toml:1: group 'g': max_active_jobs: has another value in a.toml; state it in one of them\n\
             b.toml:1: group 'g': priority: has another value in a.toml; state it in one of them"
        );
        let manifest = "[[manifest]]\nid = \"m\"\ntrain = \"t\"\ninput = {}\n";
        let found = told(&[("a.toml", manifest), ("b.toml", manifest)]);
        assert_eq!(found.trim_end(), "b.toml:3: manifest 'm': is stated in a.toml too; keep one");
    }
}
