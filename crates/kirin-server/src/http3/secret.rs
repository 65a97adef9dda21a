//! The secret of a UDP address, from which the keys of its endpoints come. The next program gets
//! it in an upgrade, and can then read what clients have from this one.

use std::io;
use std::sync::Arc;

use quinn_proto::crypto::{HandshakeTokenKey, HmacKey};
use ring::aead::quic::AES_128;
use ring::error::Unspecified;
use ring::hkdf::{HKDF_SHA256, Prk, Salt};
use ring::hmac::{self, HMAC_SHA256};
use ring::rand::{SecureRandom, SystemRandom};

use super::connection_ids::IdKey;
use super::used_tokens::UsedTokens;

/// The length of the secret.
pub(super) const SECRET_BYTES: usize = 32;

/// The secret.
#[derive(Clone)]
pub(super) struct Secret(pub(super) [u8; SECRET_BYTES]);

/// What follows from a secret (RFC 5869).
pub(super) struct Keys {
    /// Covers the places in connection IDs.
    pub(super) ids: IdKey,
    /// Makes the tokens by which clients show that they have their address (RFC 9000 section 8.1).
    pub(super) tokens: Arc<dyn HandshakeTokenKey>,
    /// Those of them that were used.
    pub(super) used_tokens: Arc<UsedTokens>,
    /// Makes the tokens of stateless resets (RFC 9000 section 10.3).
    pub(super) resets: Arc<dyn HmacKey>,
}

impl Secret {
    /// Returns a new one.
    pub(super) fn random() -> io::Result<Self> {
        let mut bytes = [0; SECRET_BYTES];
        SystemRandom::new().fill(&mut bytes).map_err(failed)?;
        Ok(Self(bytes))
    }

    /// Returns the keys.
    pub(super) fn keys(&self) -> io::Result<Keys> {
        let secret = Salt::new(HKDF_SHA256, &[]).extract(&self.0);
        let ids = secret.expand(&[b"connection IDs"], &AES_128).map_err(failed)?;
        let tokens = secret.expand(&[b"address tokens"], HKDF_SHA256).map_err(failed)?;
        let resets = secret.expand(&[b"stateless resets"], HMAC_SHA256).map_err(failed)?;
        Ok(Keys {
            ids: IdKey(ids.into()),
            tokens: Arc::new(Prk::from(tokens)),
            used_tokens: Arc::new(UsedTokens::new()),
            resets: Arc::new(hmac::Key::from(resets)),
        })
    }
}

fn failed(error: Unspecified) -> io::Error {
    io::Error::other(error.to_string())
}
