//! Hashed passwords of a password file: the schemes that are accepted, and the check.
//!
//! A check takes from milliseconds to a quarter of a second: [`crate::routing::password_checks`]
//! does it beside the event loop.

use argon2::password_hash::PasswordVerifier;
use argon2::{Argon2, PasswordHash as Argon2Hash};
use bcrypt::HashParts;
use sha_crypt::ShaCrypt;

use crate::routing::apache_md5;

/// The highest bcrypt cost: half a minute of work. More is a mistake.
const MAX_BCRYPT_COST: u32 = 17;

/// The most rounds of SHA-crypt: about as long.
const MAX_SHA_ROUNDS: u64 = 50_000_000;

/// The most memory that Argon2 may take, in KiB.
const MAX_ARGON2_KIB: u32 = 1024 * 1024;

/// A hash of a password. Its debug output does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct PasswordHash {
    scheme: Scheme,
    text: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Scheme {
    Bcrypt,
    ShaCrypt,
    Argon2,
    ApacheMd5,
}

impl PasswordHash {
    /// Parses a hash. The error says what is wrong with it, and does not repeat it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let scheme = match text.as_bytes() {
            [b'$', b'2', b'a' | b'b' | b'y', b'$', ..] => bcrypt(text)?,
            [b'$', b'5' | b'6', b'$', ..] => sha_crypt(text)?,
            bytes if bytes.starts_with(b"$argon2") => argon2(text)?,
            _ if text.starts_with(apache_md5::PREFIX) => match apache_md5::is_well_formed(text) {
                true => Scheme::ApacheMd5,
                false => return Err("the MD5 hash is malformed".into()),
            },
            bytes if bytes.starts_with(b"$1$") => {
                return Err("it is hashed with MD5, which is broken in seconds".into());
            }
            bytes if bytes.starts_with(b"{SHA}") || bytes.starts_with(b"{SSHA}") => {
                return Err("it is hashed with SHA-1, which is broken in seconds".into());
            }
            bytes if bytes.starts_with(b"$y$") || bytes.starts_with(b"$7$") => {
                return Err("yescrypt and scrypt are not supported".into());
            }
            _ => {
                return Err(
                    "it is no hash that is known: crypt(3) by DES, or not hashed at all".into()
                );
            }
        };
        Ok(Self { scheme, text: text.to_owned() })
    }

    /// Returns whether this is the hash of `password`. The check takes as long for a wrong
    /// password.
    pub fn is_of(&self, password: &[u8]) -> bool {
        match self.scheme {
            Scheme::Bcrypt => bcrypt::verify(password, &self.text).unwrap_or(false),
            Scheme::ShaCrypt => {
                ShaCrypt::default().verify_password(password, self.text.as_str()).is_ok()
            }
            Scheme::Argon2 => {
                Argon2::default().verify_password(password, self.text.as_str()).is_ok()
            }
            Scheme::ApacheMd5 => apache_md5::verify(password, &self.text),
        }
    }

    /// Returns whether a thief of the hash finds the password within seconds.
    pub fn is_weak(&self) -> bool {
        self.scheme == Scheme::ApacheMd5
    }

    /// Returns the text, which identifies the hash.
    pub fn as_bytes(&self) -> &[u8] {
        self.text.as_bytes()
    }
}

impl std::fmt::Debug for PasswordHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PasswordHash")
    }
}

fn bcrypt(text: &str) -> Result<Scheme, String> {
    let parts: HashParts = text.parse().map_err(|_| "the bcrypt hash is malformed")?;
    match parts.get_cost() {
        4..=MAX_BCRYPT_COST => Ok(Scheme::Bcrypt),
        cost => Err(format!("its bcrypt cost is {cost}: allowed is 4 to {MAX_BCRYPT_COST}")),
    }
}

/// Parses `$6$[rounds=N$]SALT$HASH`, or the same with `$5$`.
fn sha_crypt(text: &str) -> Result<Scheme, String> {
    let malformed = || "the SHA-crypt hash is malformed".to_owned();
    let hash_characters = if text.starts_with("$5$") { 43 } else { 86 };
    let mut parts = text.split('$').skip(2);
    let mut salt = parts.next().ok_or_else(malformed)?;
    if let Some(rounds) = salt.strip_prefix("rounds=") {
        match rounds.parse() {
            Ok(1000..=MAX_SHA_ROUNDS) => {}
            _ => return Err(format!("rounds={rounds}: allowed is 1000 to {MAX_SHA_ROUNDS}")),
        }
        salt = parts.next().ok_or_else(malformed)?;
    }
    let hash = parts.next().ok_or_else(malformed)?;
    let is_of_alphabet = |text: &str| {
        text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'/'))
    };
    let is_good = (1..=16).contains(&salt.len())
        && hash.len() == hash_characters
        && is_of_alphabet(hash)
        && parts.next().is_none();
    if is_good { Ok(Scheme::ShaCrypt) } else { Err(malformed()) }
}

fn argon2(text: &str) -> Result<Scheme, String> {
    let malformed = "the Argon2 hash is malformed";
    let hash = Argon2Hash::new(text).map_err(|_| malformed)?;
    let parameters = argon2::Params::try_from(&hash).map_err(|_| malformed)?;
    if parameters.m_cost() > MAX_ARGON2_KIB || hash.hash.is_none() || hash.salt.is_none() {
        return Err(format!(
            "the Argon2 hash is cut, or takes more than {MAX_ARGON2_KIB} KiB of memory"
        ));
    }
    Ok(Scheme::Argon2)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks hashes of the password `opensesame`: by `htpasswd -nbB -C 4`, three by glibc's
    /// crypt(3), by the reference `argon2`, by `openssl passwd -apr1`.
    #[test]
    fn hashes_of_other_programs_are_understood() {
        for hash in GOOD {
            let hash = PasswordHash::parse(hash).unwrap_or_else(|error| panic!("{hash}: {error}"));
            assert!(hash.is_of(b"opensesame"), "{}", hash.text);
            for wrong in [&b""[..], b"opensesam", b"opensesame ", b"OpenSesame", b"opensesame\0"] {
                assert!(!hash.is_of(wrong), "{} {wrong:?}", hash.text);
            }
            assert_eq!(format!("{hash:?}"), "PasswordHash");
            assert_eq!(hash.is_weak(), hash.text.starts_with("$apr1$"), "{}", hash.text);
        }
    }

    const GOOD: [&str; 6] = [
        "$2y$04$o9w4i3hEXEsG1LYjY7rNaeqbPx6pVgt7hANgybFjP/6tGHSMtE532",
        "$6$saltsalt$/dpv42BvGInVKxDULxBMfXE6CN.oHtXdmTeHWMcv5rsd81TjdKcroane5LphAqgVenp/4K1qV/7eYEdl4XS9O/",
        "$6$rounds=1000$0123456789abcdef$knb7e6ub0a87ZoJoNxyLxCBxJoWyNp1eC7yoI0ardYZ6F93DfwKDsxb64DpqYm.szCglREO9uZxfk02s5U9IT.",
        "$5$abc$nLqWOK0qJLCJKZMXLNybgoG547cshuV27v9Qm1qzJl4",
        "$argon2id$v=19$m=1024,t=1,p=1$c2FsdHNhbHRzYWx0$sWmfarrQ+I1DfTQa5TK1ldDDrxxzgjPh+sSOkRLhjjI",
        "$apr1$abcdefgh$hnz8AY7O7E7QvKAVjuw920",
    ];

    #[test]
    fn a_bad_hash_is_refused_with_a_reason_and_not_repeated() {
        for (hash, reason) in [
            ("$apr1$xyz$abcdefghijkl", "MD5 hash is malformed"),
            ("$1$xyz$abcdefghijkl", "MD5"),
            ("{SHA}VBPuJHI7uixaa6LQGWx4s+5GKNE=", "SHA-1"),
            ("opensesame", "not hashed"),
            ("", "not hashed"),
            ("rqXexS6ZhobKA", "DES"),
            (
                "$y$j9T$F5Jx5fExrKuPp53xLKQ..1$X3DX6M94c7o.9agCG9G317fhZg9SqC.5i5rd.RhAtQ7",
                "yescrypt",
            ),
            ("$2y$05$tooshort", "bcrypt hash is malformed"),
            ("$2y$31$bvIG6Nmid91Mu9RcmmWZfO5HJIMCT8riNW0hEp8f6/FuA2/mHZFpe", "cost is 31"),
            ("$6$salt$short", "SHA-crypt hash is malformed"),
            ("$6$rounds=9999999999$salt$x", "allowed is 1000"),
            ("$6$", "SHA-crypt hash is malformed"),
            ("$argon2id$v=19$m=65536", "Argon2 hash is"),
            ("$argon2id$", "Argon2 hash is malformed"),
        ] {
            let error = PasswordHash::parse(hash).expect_err(hash);
            assert!(error.contains(reason), "{hash}: {error}");
            assert!(hash.len() < 5 || !error.contains(hash), "{error}");
        }
    }
}
