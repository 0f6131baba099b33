//! Arguments that hold JSON: given as they are, as `@file`, or as `-` for standard input.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;

use crate::cli::error::CliError;

/// The most bytes read. Space and long escapes may make a text larger than what is left of it in canonical form.
const BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Reads an argument.
///
/// # Errors
/// [`CliError::File`] names the file; [`CliError::Usage`] says when it is too large or not text.
pub fn read(argument: &str) -> Result<String, CliError> {
    let (path, bytes) = match argument.strip_prefix('@') {
        Some(file) => {
            let path = PathBuf::from(file);
            let bytes = File::open(&path).and_then(read_some);
            (path, bytes)
        }
        None if argument == "-" => (PathBuf::from("standard input"), read_some(io::stdin())),
        None => return Ok(argument.to_owned()),
    };
    let bytes = bytes.map_err(|source| CliError::File { path: path.clone(), source })?;
    if bytes.len() as u64 > BYTES_MAX {
        let text = format!("{} has more than {BYTES_MAX} bytes; give less", path.display());
        return Err(CliError::Usage(text));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        CliError::Usage(format!("{} is not UTF-8 text from byte {at} on", path.display()))
    })
}

fn read_some(from: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(BYTES_MAX + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_argument_is_text_or_names_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("input.json");
        let at = |path: &std::path::Path| format!("@{}", path.display());

        std::fs::write(&path, "{}").unwrap();
        assert_eq!(read("{\"a\":1}").unwrap(), "{\"a\":1}");
        assert_eq!(read(&at(&path)).unwrap(), "{}");

        std::fs::write(&path, b"ab\xff").unwrap();
        let error = read(&at(&path)).unwrap_err();
        assert!(error.to_string().ends_with("is not UTF-8 text from byte 2 on"), "{error}");

        let missing = read(&at(&folder.path().join("gone"))).unwrap_err();
        assert_eq!(missing.exit_code(), crate::cli::exit::NOT_FOUND);
        assert!(missing.to_string().starts_with("cannot read "), "{missing}");
    }
}
