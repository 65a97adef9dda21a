//! The binding of Kirin's account to one that a customer has at the authority (RFC 8555 section
//! 7.3.4). Some authorities need it: they know their customers.

use std::fmt;
use std::path::PathBuf;

use base64::Engine as _;
use base64::alphabet::URL_SAFE;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// Reads base64url with or without `=` at the end. Authorities show the key in both ways.
const BASE64_URL: GeneralPurpose = GeneralPurpose::new(
    &URL_SAFE,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// A customer's account at an authority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExternalAccount {
    /// The id of the key.
    pub id: String,
    /// The file that the key was read from.
    pub path: PathBuf,
    /// The key in it.
    pub key: ExternalAccountKey,
}

/// The HMAC key of a customer's account. Its `Debug` text does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct ExternalAccountKey(Vec<u8>);

impl ExternalAccountKey {
    /// Parses base64url.
    pub fn parse(text: &str) -> Option<Self> {
        BASE64_URL.decode(text).ok().filter(|key| !key.is_empty()).map(Self)
    }
}

impl ExternalAccount {
    /// Returns what signs the binding.
    pub(crate) fn binding(&self) -> instant_acme::ExternalAccountKey {
        instant_acme::ExternalAccountKey::new(self.id.clone(), &self.key.0)
    }
}

impl fmt::Debug for ExternalAccountKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ExternalAccountKey")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_base64url_with_or_without_padding() {
        let key = ExternalAccountKey::parse("_-8tZXhhbXBsZQ").unwrap();
        assert_eq!(key.0, b"\xff\xef-example");
        assert_eq!(ExternalAccountKey::parse("_-8tZXhhbXBsZQ=="), Some(key.clone()));
        for text in ["", "a", "_-8t ZXhh", "/+8tZXhhbXBsZQ==", "ä"] {
            assert_eq!(ExternalAccountKey::parse(text), None, "{text}");
        }
        assert_eq!(format!("{key:?}"), "ExternalAccountKey");
    }
}
