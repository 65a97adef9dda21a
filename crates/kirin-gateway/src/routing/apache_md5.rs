//! Apache's hash of passwords by 1000 rounds of MD5, which `htpasswd` writes by default: `$apr1$`.
//!
//! It is weak: a graphics card tries millions of passwords a second. Kirin only checks such hashes,
//! for files that exist. No crate that is still maintained does this.

use md5::{Digest, Md5};
use subtle::ConstantTimeEq;

/// The start of such a hash. It is a part of what is hashed.
pub const PREFIX: &str = "$apr1$";

/// The longest salt, in bytes.
const MAX_SALT_BYTES: usize = 8;

/// The length of the encoded digest, in characters.
const HASH_CHARACTERS: usize = 22;

/// How often MD5 is applied.
const ROUNDS: usize = 1000;

/// The characters of the encoding, each for six bits.
const ALPHABET: &[u8; 64] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// The bytes of the digest that are encoded together, in four characters. The last byte has two
/// characters of its own.
const GROUPS: [[usize; 3]; 5] = [[0, 6, 12], [1, 7, 13], [2, 8, 14], [3, 9, 15], [4, 10, 5]];
const LAST: usize = 11;

/// Returns whether `text` is such a hash, complete and in its alphabet.
pub fn is_well_formed(text: &str) -> bool {
    parts(text).is_some_and(|(salt, hash)| {
        (1..=MAX_SALT_BYTES).contains(&salt.len())
            && hash.len() == HASH_CHARACTERS
            && hash.bytes().all(|byte| ALPHABET.contains(&byte))
    })
}

/// Returns whether `text` is the hash of `password`. The comparison takes as long for each hash.
pub fn verify(password: &[u8], text: &str) -> bool {
    parts(text).is_some_and(|(salt, hash)| {
        let expected = encode(&digest(password, salt.as_bytes()));
        expected.ct_eq(hash.as_bytes()).into()
    })
}

/// Returns the salt and the encoded digest.
fn parts(text: &str) -> Option<(&str, &str)> {
    text.strip_prefix(PREFIX)?.split_once('$')
}

/// Returns the digest after all rounds.
fn digest(password: &[u8], salt: &[u8]) -> [u8; 16] {
    let inner = md5(&[password, salt, password]);
    let mut first = Md5::new();
    first.update(password);
    first.update(PREFIX);
    first.update(salt);
    for part in password.chunks(inner.len()) {
        first.update(&inner[..part.len()]);
    }
    // One byte for each bit of the length. This is how it has been done since 1995.
    let mut length = password.len();
    while length > 0 {
        let byte = if length & 1 == 1 { &[0] } else { &password[..1] };
        first.update(byte);
        length >>= 1;
    }
    let mut digest: [u8; 16] = first.finalize().into();
    for round in 0..ROUNDS {
        let (before, after) = match round % 2 {
            0 => (&digest[..], password),
            _ => (password, &digest[..]),
        };
        let salt = if round % 3 == 0 { &[][..] } else { salt };
        let again = if round % 7 == 0 { &[][..] } else { password };
        digest = md5(&[before, salt, again, after]);
    }
    digest
}

fn md5(parts: &[&[u8]]) -> [u8; 16] {
    let mut hasher = Md5::new();
    parts.iter().for_each(|part| hasher.update(part));
    hasher.finalize().into()
}

/// Encodes a digest, each group with its lowest bits first.
fn encode(digest: &[u8; 16]) -> Vec<u8> {
    let mut text = Vec::with_capacity(HASH_CHARACTERS);
    let mut push = |mut bits: usize, characters: usize| {
        for _ in 0..characters {
            text.push(ALPHABET[bits & 63]);
            bits >>= 6;
        }
    };
    for group in GROUPS {
        let bits = group.iter().fold(0, |bits, at| bits << 8 | usize::from(digest[*at]));
        push(bits, 4);
    }
    push(usize::from(digest[LAST]), 2);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks hashes by `openssl passwd -apr1`.
    #[test]
    fn hashes_of_openssl_are_understood() {
        for (password, hash) in [
            ("a", "$apr1$abcdefgh$G8IsPsylW5ROvIKsQMRG61"),
            ("opensesame", "$apr1$abcdefgh$hnz8AY7O7E7QvKAVjuw920"),
            ("opensesame", "$apr1$x$0SSMy6KWvbio4gZaLYCeu/"),
            ("open", "$apr1$saltsalt$BJ8ZoMQQVmQ9DSUqX7duf."),
            ("0123456789abcdefg", "$apr1$abcdefgh$1EmOoQBtUQ/xoE6y2eLUr/"),
            ("\u{fc}n\u{ef}code p\u{e4}ss", "$apr1$abcdefgh$KhX/SGwG0EbmqQhmUA5TI0"),
            (
                "this is a very long password of more than forty-eight characters, indeed",
                "$apr1$abcdefgh$nvH99XK2k3Ln6utDbxSM/1",
            ),
        ] {
            assert!(is_well_formed(hash), "{hash}");
            assert!(verify(password.as_bytes(), hash), "{password} {hash}");
            for wrong in ["", "b", &format!("{password} "), &password.to_uppercase()] {
                assert!(!verify(wrong.as_bytes(), hash), "{wrong} {hash}");
            }
        }
    }

    #[test]
    fn a_malformed_hash_is_recognized() {
        for text in [
            "",
            "$apr1$",
            "$apr1$abcdefgh",
            "$apr1$abcdefgh$",
            "$apr1$$hnz8AY7O7E7QvKAVjuw920",
            "$apr1$abcdefghi$hnz8AY7O7E7QvKAVjuw920",
            "$apr1$abcdefgh$hnz8AY7O7E7QvKAVjuw92",
            "$apr1$abcdefgh$hnz8AY7O7E7QvKAVjuw9200",
            "$apr1$abcdefgh$hnz8AY7O7E7QvKAVjuw92:",
            "$1$abcdefgh$hnz8AY7O7E7QvKAVjuw920",
        ] {
            assert!(!is_well_formed(text), "{text}");
            assert!(!verify(b"opensesame", text), "{text}");
        }
    }
}
