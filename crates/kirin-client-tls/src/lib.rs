#![forbid(unsafe_code)]
//! TLS to servers: which certificates Kirin trusts, and which it presents.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

/// The TLS settings for a server, as they are configured. The default trusts the authorities of
/// the system and presents nothing.
#[derive(Clone, Debug)]
pub struct ClientTlsSettings {
    /// A PEM file with the certificates of trusted authorities; `None` for those of the system.
    pub ca: Option<PathBuf>,
    /// The name that certificates must have; `None` for the server's name.
    pub server_name: Option<String>,
    /// Whether certificates are verified.
    pub verify: bool,
    /// Kirin's own certificate and its key, as PEM files.
    pub certificate: Option<(PathBuf, PathBuf)>,
}

/// The reason why TLS settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ClientTlsError {
    /// A file cannot be read, or contains no certificate or key.
    #[error("{}: {problem}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        problem: String,
    },
    /// The system has no certificates of authorities.
    #[error(
        "there are no certificates of authorities on this system (package ca-certificates), and no `ca`"
    )]
    NoRoots,
    /// The name cannot be in a certificate.
    #[error("`{0}` is not a name that a certificate can be for")]
    ServerName(String),
    /// The key does not belong to the certificate, or its type is not supported.
    #[error("certificate and key cannot be used: {0}")]
    Pair(rustls::Error),
}

impl Default for ClientTlsSettings {
    fn default() -> Self {
        Self { ca: None, server_name: None, verify: true, certificate: None }
    }
}

impl ClientTlsSettings {
    /// Reads the files. Sessions are resumed, so that most handshakes are short.
    pub fn load(&self) -> Result<ClientConfig, ClientTlsError> {
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(ClientTlsError::Pair)?;
        let builder = if self.verify {
            builder.with_root_certificates(roots(self.ca.as_deref())?)
        } else {
            builder.dangerous().with_custom_certificate_verifier(Arc::new(Unverified(provider)))
        };
        Ok(match &self.certificate {
            None => builder.with_no_client_auth(),
            Some((chain, key)) => {
                let key =
                    PrivateKeyDer::from_pem_file(key).map_err(|error| problem(key, &error))?;
                builder
                    .with_client_auth_cert(certificates(chain)?, key)
                    .map_err(ClientTlsError::Pair)?
            }
        })
    }

    /// Returns the name that certificates must have, if it is not the server's.
    pub fn expected_name(&self) -> Result<Option<ServerName<'static>>, ClientTlsError> {
        let Some(name) = &self.server_name else { return Ok(None) };
        let parsed = ServerName::try_from(name.clone());
        parsed.map(Some).map_err(|_| ClientTlsError::ServerName(name.clone()))
    }
}

fn roots(ca: Option<&Path>) -> Result<RootCertStore, ClientTlsError> {
    let mut roots = RootCertStore::empty();
    match ca {
        Some(path) => {
            for certificate in certificates(path)? {
                roots.add(certificate).map_err(|error| problem(path, &error))?;
            }
        }
        None => {
            // Certificates of the system that cannot be parsed are skipped.
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            if roots.is_empty() {
                return Err(ClientTlsError::NoRoots);
            }
        }
    }
    Ok(roots)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, ClientTlsError> {
    let read = CertificateDer::pem_file_iter(path).map_err(|error| problem(path, &error))?;
    let certificates: Vec<_> =
        read.collect::<Result<_, _>>().map_err(|error| problem(path, &error))?;
    if certificates.is_empty() {
        return Err(problem(path, &"there is no certificate in it"));
    }
    Ok(certificates)
}

fn problem(path: &Path, problem: &dyn std::fmt::Display) -> ClientTlsError {
    ClientTlsError::File { path: path.to_owned(), problem: problem.to_string() }
}

/// Accepts any certificate, for `verify = false`. The handshake still proves that the server has
/// the key.
#[derive(Debug)]
struct Unverified(Arc<CryptoProvider>);

impl ServerCertVerifier for Unverified {
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
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(
            message,
            certificate,
            signature,
            &self.0.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(
            message,
            certificate,
            signature,
            &self.0.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
