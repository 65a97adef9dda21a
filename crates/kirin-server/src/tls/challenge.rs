//! The handshake by which an authority checks that a name leads here: tls-alpn-01 (RFC 8737).
//!
//! The authority offers a single protocol by ALPN, `acme-tls/1`, and expects a certificate that no
//! other client may get. So the first record of a connection is looked at before its session
//! processes it. Finding the certificate may take time, because another machine may have the
//! answer. The handshake waits for that, and the event loop does not.

use std::pin::Pin;
use std::sync::Arc;

use memchr::memmem;
use rustls::ServerConfig;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{Acceptor, NoServerSessionStorage};
use rustls::sign::{CertifiedKey, SingleCertAndKey};

use crate::tls::TlsError;

/// The protocol that an authority offers (RFC 8737 section 6.2).
const ALPN_ACME: &[u8] = b"acme-tls/1";

/// The length of the header of a record (RFC 8446 section 5.1).
const RECORD_HEADER_BYTES: usize = 5;

/// The certificates that prove names to authorities.
pub trait ChallengeCertificates: Send + Sync {
    /// Returns the certificate for a name, if an order for it is going on.
    fn find<'a>(&'a self, name: &'a str) -> FoundCertificate<'a>;
}

/// The result of a search for a certificate. It may have to ask another machine.
pub type FoundCertificate<'a> = Pin<Box<dyn Future<Output = Option<ChallengeCertificate>> + 'a>>;

/// A certificate that proves a name to an authority, with the settings of the handshake.
#[derive(Clone, Debug)]
pub struct ChallengeCertificate(Arc<ServerConfig>);

impl ChallengeCertificate {
    /// Returns the settings that serve `certificate`. They ask for no certificate of the client,
    /// and no session resumes.
    pub fn new(
        certificate: CertificateDer<'static>,
        key: PrivateKeyDer<'static>,
    ) -> Result<Self, TlsError> {
        let provider = default_provider();
        // No check whether both match: it refuses the critical extension of these certificates.
        let key = provider.key_provider.load_private_key(key)?;
        let certified = CertifiedKey::new(vec![certificate], key);
        let mut config = ServerConfig::builder_with_provider(Arc::new(provider))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(SingleCertAndKey::from(certified)));
        config.alpn_protocols = vec![ALPN_ACME.to_vec()];
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(Self(Arc::new(config)))
    }

    pub(crate) fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.0)
    }
}

/// What the first record of a connection says about the client.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FirstRecord {
    /// It has not arrived completely.
    Incomplete,
    /// The client is not an authority.
    OfClient,
    /// An authority wants proof of this name.
    OfAuthority(Box<str>),
}

impl FirstRecord {
    /// Looks at the bytes that a client has sent so far. A ClientHello in several records is not an
    /// authority's: it has one name and one protocol.
    pub(crate) fn look(received: &[u8]) -> Self {
        let Some(&[_, _, _, high, low]) = received.first_chunk::<RECORD_HEADER_BYTES>() else {
            return Self::Incomplete;
        };
        let length = RECORD_HEADER_BYTES + usize::from(u16::from_be_bytes([high, low]));
        match received.get(..length) {
            None => Self::Incomplete,
            // Nearly all clients end here, for the price of a search.
            Some(record) if memmem::find(record, ALPN_ACME).is_none() => Self::OfClient,
            Some(record) => asked_name(record).map_or(Self::OfClient, Self::OfAuthority),
        }
    }
}

/// Returns the name that a ClientHello asks for, if it is an authority's.
fn asked_name(mut record: &[u8]) -> Option<Box<str>> {
    let mut acceptor = Acceptor::default();
    acceptor.read_tls(&mut record).ok()?;
    // The session reports errors.
    let accepted = acceptor.accept().ok()??;
    let hello = accepted.client_hello();
    let is_of_authority = hello.alpn()?.eq([ALPN_ACME]);
    hello.server_name().filter(|_| is_of_authority).map(Box::from)
}

#[cfg(test)]
mod tests {
    use rustls::pki_types::ServerName;
    use rustls::{ClientConfig, ClientConnection, RootCertStore};

    use super::*;

    /// Returns the first bytes of a client with these protocols.
    fn hello(name: &str, protocols: &[&[u8]]) -> Vec<u8> {
        let mut config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(RootCertStore::empty())
            .with_no_client_auth();
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        let name = ServerName::try_from(name.to_owned()).unwrap();
        let mut client = ClientConnection::new(Arc::new(config), name).unwrap();
        let mut bytes = Vec::new();
        client.write_tls(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn an_authority_offers_only_its_own_protocol_and_a_name() {
        let of_authority = hello("a.test", &[ALPN_ACME]);
        assert_eq!(FirstRecord::look(&of_authority), FirstRecord::OfAuthority("a.test".into()));
        for length in 0..of_authority.len() {
            let look = FirstRecord::look(&of_authority[..length]);
            assert_eq!(look, FirstRecord::Incomplete, "{length} bytes");
        }
        for (name, protocols) in [
            ("a.test", &[][..]),
            ("a.test", &[&b"h2"[..], b"http/1.1"]),
            ("a.test", &[ALPN_ACME, b"h2"]),
            ("a.test", &[b"h2", ALPN_ACME]),
            ("a.test", &[b"acme-tls/10"]),
            // An address is not sent as a name.
            ("127.0.0.1", &[ALPN_ACME]),
        ] {
            let look = FirstRecord::look(&hello(name, protocols));
            assert_eq!(look, FirstRecord::OfClient, "{name} {protocols:?}");
        }
        let garbage = [&[22, 3, 1, 0, 20][..], b"01234acme-tls/156789"].concat();
        assert_eq!(FirstRecord::look(&garbage), FirstRecord::OfClient);
    }
}
