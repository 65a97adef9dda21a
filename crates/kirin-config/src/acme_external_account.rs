//! `external_account` of `acme`: a customer's account at the authority.

use std::path::Path;

use kirin_acme::{ExternalAccount, ExternalAccountKey};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::secret_file::{named_secret, read_secret};
use crate::source::{ConfigError, ConfigSource};
use crate::written::Written;

/// Where the key comes from.
const GET_ONE: &str = "write the HMAC key that the authority shows into it, readable by its owner";

/// A customer's account at an authority (RFC 8555 section 7.3.4).
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExternalAccountSection {
    /// The id of the key, as the authority shows it.
    pub id: Written<String>,
    /// A file with the HMAC key, in base64url as the authority shows it, such as `"eab.key"`. Not
    /// every user of the machine may read it. Kirin uses the key only when it makes its account.
    pub key_file: Written<String>,
}

/// Checks `section`, and reads its key.
pub fn check_external_account(
    section: &ExternalAccountSection,
    source: &ConfigSource,
) -> Result<ExternalAccount, ConfigError> {
    if section.id.is_empty() || section.id.chars().any(char::is_control) {
        let message = "`acme.external_account.id` is the key id that the authority has given you";
        return Err(source.error(section.id.span(), message));
    }
    let name = "acme.external_account.key_file";
    let (path, key) = named_secret(&section.key_file, name, key_in, source)?;
    Ok(ExternalAccount { id: section.id.to_string(), path, key })
}

/// Returns the key in a file. The error never has a part of it.
fn key_in(path: &Path) -> Result<ExternalAccountKey, String> {
    let text = read_secret(path, GET_ONE)?;
    let key = std::str::from_utf8(&text).ok().and_then(ExternalAccountKey::parse);
    key.ok_or_else(|| format!("is no key in base64url (A-Z, a-z, 0-9, - and _); {GET_ONE}"))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_key_is_the_only_text_of_a_file_that_not_everybody_reads() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("eab.key");
        let error = || key_in(&file).unwrap_err();
        assert!(error().contains("HMAC key that the authority shows"), "{}", error());
        fs::write(&file, "c2VjcmV0\n").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
        assert!(error().contains("chmod o-rwx"), "{}", error());
        fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
        assert_eq!(key_in(&file), Ok(ExternalAccountKey::parse("c2VjcmV0").unwrap()));
        for text in ["", "s3cret!", "c2Vj cmV0"] {
            fs::write(&file, text).unwrap();
            assert!(error().contains("base64url") && !error().contains("s3c"), "{}", error());
        }
    }
}
