//! What is kept of a parked run, encrypted: its Memory holds whatever its guests computed.

use chacha20poly1305::aead::{Aead, Payload};
use chacha20poly1305::{KeyInit, XChaCha20Poly1305, XNonce};

use crate::clock;
use crate::model::ids::RunId;

/// What stands for a key where there is none: the text is kept as the inputs of runs are.
const NO_KEY: &str = "none";
const NONCE_BYTES: usize = 24;

/// A key for what is kept of parked runs. All hosts of a store need the same.
#[derive(Clone)]
pub struct MemoryKey {
    id: String,
    cipher: XChaCha20Poly1305,
}

impl std::fmt::Debug for MemoryKey {
    /// Leaves out the key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "MemoryKey({})", self.id)
    }
}

impl MemoryKey {
    /// A key under a name, by which it is found again.
    pub fn new(id: impl Into<String>, key: &[u8; 32]) -> Self {
        Self { id: id.into(), cipher: XChaCha20Poly1305::new(key.into()) }
    }
}

/// A text as it is kept, and the id of the key it is kept under.
pub type Sealed = (Vec<u8>, String);

/// Encrypts the text of a run.
///
/// # Errors
/// Why it could not be.
pub fn seal(key: Option<&MemoryKey>, run: RunId, text: Vec<u8>) -> Result<Sealed, String> {
    let Some(key) = key else { return Ok((text, NO_KEY.to_owned())) };
    let nonce = clock::random::<NONCE_BYTES>().map_err(|error| error.to_string())?;
    let aad = run.to_string();
    let payload = Payload { msg: &text, aad: aad.as_bytes() };
    let sealed = key.cipher.encrypt(XNonce::from_slice(&nonce), payload);
    let sealed = sealed.map_err(|_| "it could not be encrypted".to_owned())?;
    Ok(([&nonce[..], &sealed].concat(), key.id.clone()))
}

/// The text of a run as it was before [`seal`].
///
/// # Errors
/// Why it cannot be read: another key, another run's, or changed since.
pub fn open(
    key: Option<&MemoryKey>,
    run: RunId,
    (sealed, key_id): (&[u8], &str),
) -> Result<Vec<u8>, String> {
    let key = match key {
        _ if key_id == NO_KEY => return Ok(sealed.to_vec()),
        Some(key) if key.id == key_id => key,
        _ => {
            return Err(format!(
                "it is encrypted with the key '{key_id}', which this host does not have"
            ));
        }
    };
    let bad = || "it was changed since it was kept, or is another run's".to_owned();
    let (nonce, sealed) = sealed.split_at_checked(NONCE_BYTES).ok_or_else(bad)?;
    let aad = run.to_string();
    let payload = Payload { msg: sealed, aad: aad.as_bytes() };
    key.cipher.decrypt(XNonce::from_slice(nonce), payload).map_err(|_| bad())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_run_with_the_same_key_reads_it_back() {
        let (key, other) = (MemoryKey::new("a", &[7; 32]), MemoryKey::new("b", &[7; 32]));
        let (sealed, id) = seal(Some(&key), RunId(1), b"secret".to_vec()).unwrap();
        assert!(!sealed.windows(6).any(|part| part == b"secret"));
        let open = |key, run, sealed: &[u8]| open(key, RunId(run), (sealed, &id));

        assert_eq!(open(Some(&key), 1, &sealed).unwrap(), b"secret");
        assert!(open(Some(&key), 2, &sealed).is_err());
        assert!(open(Some(&other), 1, &sealed).is_err());
        assert!(open(None, 1, &sealed).is_err());
        assert!(open(Some(&key), 1, &sealed[..20]).is_err());
        let mut changed = sealed.clone();
        changed[30] ^= 1;
        assert!(open(Some(&key), 1, &changed).is_err());
    }

    #[test]
    fn without_a_key_it_is_kept_as_it_is() {
        let (kept, id) = seal(None, RunId(1), b"text".to_vec()).unwrap();
        assert_eq!(open(None, RunId(1), (&kept, &id)).unwrap(), b"text");
    }
}
