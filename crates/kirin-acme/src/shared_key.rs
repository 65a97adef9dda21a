//! The secret with which machines keep account and certificates on the origin.
//!
//! A record there is encrypted and authenticated (RFC 8439). Its name is authenticated with it, so
//! nobody without the key can read a record, change it, or put it under another name.

use std::fmt;
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom, SystemRandom};

/// The length of a key in bytes.
const KEY_BYTES: usize = 32;

/// The first byte of a record: how the rest is made. The nonce and the encrypted text follow.
const FORMAT: u8 = 1;

/// A key that several machines have, and the file that it was read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedKeyFile {
    /// The file.
    pub path: PathBuf,
    /// The key in it.
    pub key: SharedKey,
}

/// A key that several machines have. Its `Debug` text does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct SharedKey([u8; KEY_BYTES]);

impl SharedKey {
    /// Parses 64 hexadecimal digits or 44 characters of base64: 32 bytes.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = match text.len() {
            64 => from_hex(text)?,
            44 => STANDARD.decode(text).ok()?,
            _ => return None,
        };
        bytes.try_into().ok().map(Self)
    }

    /// Returns the key, from which others are made.
    pub fn bytes(&self) -> &[u8; KEY_BYTES] {
        &self.0
    }

    /// Encrypts a record under its name. Returns `None` if the system gives no random numbers.
    pub(crate) fn seal(&self, name: &str, text: &[u8]) -> Option<Vec<u8>> {
        let mut nonce = [0; NONCE_LEN];
        SystemRandom::new().fill(&mut nonce).ok()?;
        let mut encrypted = text.to_vec();
        let (nonce_of_record, name) = (Nonce::assume_unique_for_key(nonce), Aad::from(name));
        self.cipher()?.seal_in_place_append_tag(nonce_of_record, name, &mut encrypted).ok()?;
        Some([&[FORMAT], &nonce[..], &encrypted].concat())
    }

    /// Decrypts a record. Returns `None` if it was made with another key or under another name.
    pub(crate) fn open(&self, name: &str, record: &[u8]) -> Option<Vec<u8>> {
        let (nonce, encrypted) = record.strip_prefix(&[FORMAT])?.split_at_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut encrypted = encrypted.to_vec();
        let text = self.cipher()?.open_in_place(nonce, Aad::from(name), &mut encrypted).ok()?;
        Some(text.to_vec())
    }

    fn cipher(&self) -> Option<LessSafeKey> {
        UnboundKey::new(&CHACHA20_POLY1305, &self.0).ok().map(LessSafeKey::new)
    }
}

impl fmt::Debug for SharedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedKey")
    }
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let (pairs, _) = text.as_bytes().as_chunks::<2>();
    pairs.iter().map(|&[high, low]| Some(digit(high)? << 4 | digit(low)?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_32_bytes_in_hexadecimal_or_base64() {
        let hex = "000102030405060708090a0b0c0d0e0f101112131415161718191A1B1C1D1E1F";
        let key = SharedKey::parse(hex).unwrap();
        assert_eq!(key.0, std::array::from_fn(|at| at as u8));
        assert_eq!(SharedKey::parse("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="), Some(key));
        for text in ["", &hex[1..], &hex.replace('a', "g"), &"A".repeat(44), &"ä".repeat(32)] {
            assert_eq!(SharedKey::parse(text), None, "{text}");
        }
        assert_eq!(format!("{:?}", SharedKey::parse(hex).unwrap()), "SharedKey");
    }

    #[test]
    fn a_record_is_read_only_with_its_key_and_its_name() {
        let key = |byte| SharedKey([byte; KEY_BYTES]);
        let record = key(1).seal("acme/a", b"secret").unwrap();
        assert_eq!(key(1).open("acme/a", &record).as_deref(), Some(&b"secret"[..]));
        assert_eq!((key(2).open("acme/a", &record), key(1).open("acme/b", &record)), (None, None));
        assert!(!record.windows(6).any(|part| part == b"secret"));
        assert_ne!(record, key(1).seal("acme/a", b"secret").unwrap(), "each has its own nonce");
        for at in 0..record.len() {
            let mut changed = record.clone();
            changed[at] ^= 1;
            assert_eq!(key(1).open("acme/a", &changed), None, "byte {at}");
            assert_eq!(key(1).open("acme/a", &record[..at]), None, "the first {at} bytes");
        }
    }
}
