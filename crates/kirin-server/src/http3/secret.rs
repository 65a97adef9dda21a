//! The secret of a UDP address, from which the keys of its endpoints come. The next program gets
//! it in an upgrade, and can then read what clients have from this one.

use std::sync::Arc;

use quinn_proto::crypto::{HandshakeTokenKey, HmacKey};
use ring::rand::{SecureRandom, SystemRandom};
use ring::{hkdf, hmac};

/// The length of the secret.
pub(super) const SECRET_BYTES: usize = 32;

/// The secret.
#[derive(Clone)]
pub(super) struct Secret(pub(super) [u8; SECRET_BYTES]);

impl Secret {
    /// Returns a new one.
    pub(super) fn random() -> Self {
        let mut bytes = [0; SECRET_BYTES];
        // The kernel's random numbers do not fail once they have begun.
        _ = SystemRandom::new().fill(&mut bytes);
        Self(bytes)
    }

    /// Returns the key of the tokens by which clients show that they have their address (RFC 9000
    /// section 8.1).
    pub(super) fn token_key(&self) -> Arc<dyn HandshakeTokenKey> {
        let secret = self.derive::<64>(b"address tokens");
        Arc::new(hkdf::Salt::new(hkdf::HKDF_SHA256, &[]).extract(&secret))
    }

    /// Returns the key of stateless resets (RFC 9000 section 10.3).
    pub(super) fn reset_key(&self) -> Arc<dyn HmacKey> {
        Arc::new(hmac::Key::new(hmac::HMAC_SHA256, &self.derive::<64>(b"stateless resets")))
    }

    /// Returns the bytes of the key for connection IDs.
    pub(super) fn connection_id_key(&self) -> [u8; 16] {
        self.derive(b"connection IDs")
    }

    /// Returns bytes for one purpose (RFC 5869 section 2.3).
    fn derive<const N: usize>(&self, purpose: &[u8]) -> [u8; N] {
        let mut bytes = [0; N];
        let key = hkdf::Salt::new(hkdf::HKDF_SHA256, &[]).extract(&self.0);
        let filled = key.expand(&[purpose], Length(N)).and_then(|okm| okm.fill(&mut bytes));
        debug_assert!(filled.is_ok(), "the lengths are below 255 times that of a hash");
        bytes
    }
}

/// The length of derived bytes.
struct Length(usize);

impl hkdf::KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_one_secret_are_the_same_and_of_another_not() {
        let (one, other) = (Secret::random(), Secret::random());
        assert_eq!(one.connection_id_key(), one.clone().connection_id_key());
        assert_ne!(one.connection_id_key(), other.connection_id_key());
        assert_ne!(one.derive::<16>(b"a"), one.derive::<16>(b"b"));
    }
}
