//! The key exchange X25519MLKEM768: somebody who records a connection now cannot decrypt it later
//! with a quantum computer, unless both of its parts are broken.
//!
//! rustls has it with another library only, which needs a C compiler and cmake to build. So this
//! joins ML-KEM-768 (FIPS 203) of the crate `ml-kem` and the X25519 of *ring*, as
//! draft-ietf-tls-ecdhe-mlkem says. Browsers send shares for both, so that no round trip is added.

use std::sync::Arc;

use ml_kem::kem::Kem;
use ml_kem::{B32, MlKem768};
use ring::rand::{SecureRandom, SystemRandom};
use rustls::crypto::ring::{default_provider, kx_group};
use rustls::crypto::{
    ActiveKeyExchange, CompletedKeyExchange, CryptoProvider, GetRandomFailed, SharedSecret,
    SupportedKxGroup,
};
use rustls::ffdhe_groups::FfdheGroup;
use rustls::{NamedGroup, PeerMisbehaved, ProtocolVersion};

/// The bytes of a client's ML-KEM-768 key (FIPS 203 table 3). Those of X25519 follow.
const ENCAPSULATION_KEY_BYTES: usize = 1184;

/// Returns the algorithms of rustls, and this key exchange before the others.
pub(super) fn provider() -> Arc<CryptoProvider> {
    let mut provider = default_provider();
    provider.kx_groups.insert(0, &X25519MlKem768);
    Arc::new(provider)
}

/// The server's side of the key exchange.
#[derive(Debug)]
struct X25519MlKem768;

impl SupportedKxGroup for X25519MlKem768 {
    /// Returns an error: a server does not begin a key exchange.
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, rustls::Error> {
        Err(rustls::Error::General("X25519MLKEM768 is for servers here".into()))
    }

    fn start_and_complete(
        &self,
        client_share: &[u8],
    ) -> Result<CompletedKeyExchange, rustls::Error> {
        let (key, classical) = client_share
            .split_at_checked(ENCAPSULATION_KEY_BYTES)
            .ok_or(PeerMisbehaved::InvalidKeyShare)?;
        let classical = kx_group::X25519.start_and_complete(classical)?;
        let key = key.try_into().map_err(|_| PeerMisbehaved::InvalidKeyShare)?;
        // It checks that all numbers of the key are below the modulus (FIPS 203 section 7.2).
        let key = <MlKem768 as Kem>::EncapsulationKey::new(key)
            .map_err(|_| PeerMisbehaved::InvalidKeyShare)?;
        let mut random = B32::default();
        SystemRandom::new().fill(&mut random).map_err(|_| GetRandomFailed)?;
        let (ciphertext, secret) = key.encapsulate_deterministic(&random);
        Ok(CompletedKeyExchange {
            group: self.name(),
            pub_key: [&ciphertext[..], &classical.pub_key].concat(),
            secret: SharedSecret::from([&secret[..], classical.secret.secret_bytes()].concat()),
        })
    }

    fn ffdhe_group(&self) -> Option<FfdheGroup<'static>> {
        None
    }

    fn name(&self) -> NamedGroup {
        NamedGroup::X25519MLKEM768
    }

    fn usable_for_version(&self, version: ProtocolVersion) -> bool {
        version == ProtocolVersion::TLSv1_3
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ml_kem::kem::{Decapsulate, KeyExport};

    type Decapsulation = <MlKem768 as Kem>::DecapsulationKey;

    fn client_keys() -> (Decapsulation, Box<dyn ActiveKeyExchange>, Vec<u8>) {
        let quantum = Decapsulation::from_seed([7; 64].into());
        let classical = kx_group::X25519.start().unwrap();
        let share = [&quantum.encapsulation_key().to_bytes()[..], classical.pub_key()].concat();
        (quantum, classical, share)
    }

    #[test]
    fn both_sides_get_the_secrets_of_both_parts_in_their_order() {
        let (quantum, classical, share) = client_keys();
        let server = X25519MlKem768.start_and_complete(&share).unwrap();
        let (ciphertext, rest) = server.pub_key.split_at(1088);
        assert_eq!(rest.len(), 32);
        let secret = quantum.decapsulate_slice(ciphertext).unwrap();
        let other = classical.complete(rest).unwrap();
        let expected = [&secret[..], other.secret_bytes()].concat();
        assert_eq!(server.secret.secret_bytes(), expected);
        let again = X25519MlKem768.start_and_complete(&share).unwrap();
        assert_ne!(again.secret.secret_bytes(), expected, "each exchange has a secret of its own");
    }

    #[test]
    fn a_share_that_is_no_key_is_refused() {
        let (_, _, share) = client_keys();
        let mut too_large = share.clone();
        // Two numbers of 12 bits that are not below the modulus.
        too_large[..3].fill(0xFF);
        let mut longer = share.clone();
        longer.push(0);
        for bad in [&[][..], &share[..1184], &share[..1215], &longer, &too_large] {
            assert!(X25519MlKem768.start_and_complete(bad).is_err(), "{} bytes", bad.len());
        }
    }
}
