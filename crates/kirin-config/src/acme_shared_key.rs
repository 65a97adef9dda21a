//! `shared_key_file` of `acme`: the secret with which several machines share a certificate.

use std::path::Path;

use kirin_acme::{SharedKey, SharedKeyFile};

use crate::listener::ListenerSection;
use crate::secret_file::{named_secret, read_secret};
use crate::source::{ConfigError, ConfigSource};
use crate::written::Written;

/// How to make a key.
const MAKE_ONE: &str =
    "make one with `(umask 077; openssl rand -hex 32 > FILE)`, and give all machines the same";

/// Reads the key that `file` names.
pub fn read_shared_key(
    file: &Written<String>,
    source: &ConfigSource,
) -> Result<SharedKeyFile, ConfigError> {
    let (path, key) = named_secret(file, "acme.shared_key_file", key_in, source)?;
    Ok(SharedKeyFile { path, key })
}

/// Checks that there is an origin, by which machines share certificates, if a listener has a key
/// for that.
pub fn check_shared_keys(
    sections: &[ListenerSection],
    has_origin: bool,
    source: &ConfigSource,
) -> Result<(), ConfigError> {
    let acme = sections.iter().filter_map(|section| section.tls.as_ref()?.acme.as_ref());
    match acme.filter_map(|acme| acme.shared_key_file.as_ref()).next() {
        Some(file) if !has_origin => {
            let message = "`acme.shared_key_file` without `store.origin`: machines share \
                           certificates by the origin of the store; add `origin` to [store], or \
                           remove `shared_key_file`";
            Err(source.error(file.span(), message))
        }
        _ => Ok(()),
    }
}

/// Returns the key in a file. The error never has a part of it.
pub(crate) fn key_in(path: &Path) -> Result<SharedKey, String> {
    let text = read_secret(path, MAKE_ONE)?;
    let key = std::str::from_utf8(&text).ok().and_then(SharedKey::parse);
    key.ok_or_else(|| {
        format!("is no key: 64 hexadecimal digits or 44 characters of base64; {MAKE_ONE}")
    })
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_key_is_the_only_text_of_a_file_that_not_everybody_reads() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("acme.key");
        let error = || key_in(&file).unwrap_err();
        assert!(error().contains("openssl rand -hex 32"), "{}", error());
        let hex = "0123456789abcdef".repeat(4);
        fs::write(&file, format!("{hex}\n")).unwrap();
        for mode in [0o644, 0o602, 0o601] {
            fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
            assert!(error().contains("chmod o-rwx"), "{mode:o}: {}", error());
        }
        for mode in [0o600, 0o640, 0o400] {
            fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
            assert_eq!(key_in(&file), Ok(SharedKey::parse(&hex).unwrap()), "{mode:o}");
        }
        fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
        for text in ["", "s3cret", &hex[1..], &format!("{hex}{hex}"), &format!("{hex}\n{hex}")] {
            fs::write(&file, text).unwrap();
            let error = error();
            assert!(error.contains("openssl rand -hex 32") && !error.contains("s3"), "{error}");
            assert!(!error.contains("0123"), "{error}");
        }
        fs::write(&file, "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=").unwrap();
        assert!(key_in(&file).is_ok());
        fs::write(&file, "a".repeat(5000)).unwrap();
        assert!(error().contains("4096 bytes"), "{}", error());
    }
}
