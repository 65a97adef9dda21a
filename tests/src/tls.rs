//! A TLS client that shows the negotiated values and how the connection ended.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, HandshakeKind, ProtocolVersion,
    RootCertStore, SignatureScheme, StreamOwned,
};

use crate::{Authority, Issued, wait_limit};

/// The settings of a client's handshakes. Connections with one of these share its sessions, so that
/// the second may resume.
#[derive(Clone)]
pub struct TlsSetup(Arc<ClientConfig>);

impl TlsSetup {
    /// Trusts `authority`, sends `certificate`, speaks HTTP/1.
    ///
    /// # Panics
    /// Panics if a certificate is invalid.
    pub fn new(
        authority: &Authority,
        certificate: Option<&Issued>,
        version: ProtocolVersion,
    ) -> Self {
        Self::with_root(&authority.pem(), certificate, version)
    }

    /// Trusts the certificate in `root`, which is PEM.
    ///
    /// # Panics
    /// Panics if a certificate is invalid.
    pub fn with_root(root: &str, certificate: Option<&Issued>, version: ProtocolVersion) -> Self {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let version = match version {
            ProtocolVersion::TLSv1_2 => &rustls::version::TLS12,
            _ => &rustls::version::TLS13,
        };
        let certificate_of =
            |pem: &str| CertificateDer::from_pem_slice(pem.as_bytes()).expect("a certificate");
        let mut roots = RootCertStore::empty();
        roots.add(certificate_of(root)).expect("a root");
        let builder = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[version])
            .expect("a version")
            .with_root_certificates(roots);
        let mut config = match certificate {
            None => builder.with_no_client_auth(),
            Some(Issued { chain, key }) => {
                let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("a key");
                builder.with_client_auth_cert(vec![certificate_of(chain)], key).expect("a pair")
            }
        };
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Self(Arc::new(config))
    }

    /// Returns the same settings with other protocols.
    #[must_use]
    pub fn with_protocols(&self, protocols: &[&str]) -> Self {
        let mut config = ClientConfig::clone(&self.0);
        config.alpn_protocols =
            protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
        Self(Arc::new(config))
    }

    /// Returns the settings of an authority that proves a name by tls-alpn-01 (RFC 8737). It takes
    /// any certificate.
    ///
    /// # Panics
    /// Panics if there is no such setting.
    pub fn of_authority() -> Self {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = AnyCertificate(provider.signature_verification_algorithms);
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        Self(Arc::new(config)).with_protocols(&["acme-tls/1"])
    }
}

/// Accepts any certificate.
#[derive(Debug)]
struct AnyCertificate(WebPkiSupportedAlgorithms);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        // webpki reads no certificate with an unknown critical extension.
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }
}

/// A connection.
pub struct TlsClient {
    stream: StreamOwned<ClientConnection, TcpStream>,
}

impl TlsClient {
    /// Connects and makes the handshake for the server `name`.
    pub fn connect(address: SocketAddr, name: &str, setup: &TlsSetup) -> io::Result<Self> {
        let mut socket = TcpStream::connect(address)?;
        socket.set_read_timeout(Some(wait_limit()))?;
        let name = ServerName::try_from(name.to_owned()).map_err(io::Error::other)?;
        let mut connection =
            ClientConnection::new(Arc::clone(&setup.0), name).map_err(io::Error::other)?;
        while connection.is_handshaking() {
            connection.complete_io(&mut socket)?;
        }
        Ok(Self { stream: StreamOwned::new(connection, socket) })
    }

    /// Returns whether the handshake resumed a session.
    pub fn is_resumed(&self) -> bool {
        self.stream.conn.handshake_kind() == Some(HandshakeKind::Resumed)
    }

    /// Returns the first certificate of the server.
    ///
    /// # Panics
    /// Panics if there is none.
    pub fn server_certificate(&self) -> &[u8] {
        self.stream.conn.peer_certificates().and_then(<[_]>::first).expect("a certificate")
    }

    /// Returns whether the server has sent the certificate `issued`.
    ///
    /// # Panics
    /// Panics if `issued` is invalid.
    pub fn server_is(&self, issued: &Issued) -> bool {
        let expected =
            CertificateDer::from_pem_slice(issued.chain.as_bytes()).expect("a certificate");
        self.stream.conn.peer_certificates().and_then(<[_]>::first) == Some(&expected)
    }

    /// Sends bytes.
    ///
    /// # Panics
    /// Panics if the connection is gone.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        self.stream.write_all(bytes.as_ref()).and_then(|()| self.stream.flush()).expect("send");
        self
    }

    /// Sends close_notify, and can still read.
    ///
    /// # Panics
    /// Panics if the connection is gone.
    pub fn end(&mut self) -> &mut Self {
        self.stream.conn.send_close_notify();
        self.stream.flush().expect("close_notify");
        self
    }

    /// Reads up to some bytes.
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.read(buffer)
    }

    /// Reads everything up to the end. A connection without close_notify ends with `UnexpectedEof`.
    pub fn read_to_end(&mut self) -> (Vec<u8>, io::Result<usize>) {
        let mut received = Vec::new();
        let result = self.stream.read_to_end(&mut received);
        (received, result)
    }

    /// Sends GET with `Connection: close`, and returns everything that arrives.
    ///
    /// # Panics
    /// Panics if the connection ends without close_notify.
    pub fn get_and_close(&mut self, target: &str) -> String {
        self.send(format!("GET {target} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n"));
        let (received, result) = self.read_to_end();
        let received = String::from_utf8_lossy(&received).into_owned();
        result.unwrap_or_else(|error| panic!("{error} after {received}"));
        received
    }
}
