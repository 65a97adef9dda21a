//! What a listener needs to speak TLS: its certificates, the settings made from them, and how both
//! are exchanged while it serves.
//!
//! Made by the program for each listener with `[listener.tls]` and shared by all loops. A new
//! connection takes the settings of the moment; connections that are open keep theirs.

mod certificates;
pub(crate) mod client_certificate;
pub(crate) mod stream;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use rustls::ServerConfig;
use rustls::crypto::ring::{Ticketer, default_provider};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::sign::CertifiedKey;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::tls::certificates::{Certificates, load_certificate, load_client_authorities};
use crate::tls::stream::TlsStream;

/// What a connection speaks after the handshake, by ALPN (RFC 7301).
pub(crate) const ALPN_HTTP2: &[u8] = b"h2";
const ALPN_HTTP1: &[u8] = b"http/1.1";

/// What the configuration says.
#[derive(Clone, Debug)]
pub struct TlsSettings {
    /// Certificates; the first is for clients that name no server, or one that none is for. With
    /// none of them, handshakes are refused until there is one ([`Tls::install`]).
    pub certificates: Vec<CertificateFiles>,
    /// Whose certificates clients may show; none asks for no certificate.
    pub client_authorities: Option<ClientAuthorities>,
    /// How long a handshake may take.
    pub handshake_time: Duration,
}

/// Where a certificate is, in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The certificate, then those that lead to its authority.
    pub chain: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// Whose certificates clients may show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientAuthorities {
    /// Certificates of the authorities, in PEM.
    pub file: PathBuf,
    /// Whether a client without a certificate is turned away.
    pub required: bool,
}

/// A certificate or key that is not used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read {0}: {1}")]
    Read(PathBuf, #[source] std::io::Error),
    /// A file has not what it should have.
    #[error("{0}: {1}")]
    Content(PathBuf, String),
    /// Certificate and key do not belong together, or cannot be used.
    #[error("certificate {chain} with key {key}: {error}")]
    Pair {
        /// The certificate's file.
        chain: PathBuf,
        /// The key's file.
        key: PathBuf,
        /// Why.
        error: rustls::Error,
    },
    /// No settings can be made of it.
    #[error("TLS: {0}")]
    Settings(#[from] rustls::Error),
}

/// A listener's certificates and settings.
pub struct Tls {
    settings: TlsSettings,
    certificates: Arc<Certificates>,
    config: ArcSwap<ServerConfig>,
}

impl Tls {
    /// Reads the files that `settings` name.
    pub fn load(settings: TlsSettings) -> Result<Self, TlsError> {
        let certificates = Arc::new(Certificates::new(load_all(&settings.certificates)?));
        let verifier = client_verifier(settings.client_authorities.as_ref())?;
        let config = server_config(&certificates, verifier)?;
        Ok(Self { settings, certificates, config: ArcSwap::from_pointee(config) })
    }

    /// Reads the files again. New connections get what is in them now; when one of them cannot be
    /// used, nothing changes.
    pub fn reload(&self) -> Result<(), TlsError> {
        let certificates = load_all(&self.settings.certificates)?;
        if let Some(authorities) = &self.settings.client_authorities {
            let verifier = client_verifier(Some(authorities))?;
            // With new ticket keys: an old ticket carries a client's certificate that these
            // authorities have not seen.
            let config = server_config(&self.certificates, verifier)?;
            self.config.store(Arc::new(config));
        }
        // With none in the settings, those there are come from elsewhere.
        if !certificates.is_empty() {
            self.certificates.replace(certificates);
        }
        Ok(())
    }

    /// Uses the certificates in `files` for new connections, in place of those that are used now:
    /// for certificates that the settings do not name. A chain and its key may be in one file.
    pub fn install(&self, files: &[CertificateFiles]) -> Result<(), TlsError> {
        self.certificates.replace(load_all(files)?);
        Ok(())
    }

    /// TLS over a new connection.
    pub(crate) fn stream<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        socket: S,
    ) -> io::Result<TlsStream<S>> {
        TlsStream::new(socket, self.config.load_full()).map_err(io::Error::other)
    }

    /// How long a handshake may take.
    pub(crate) fn handshake_time(&self) -> Duration {
        self.settings.handshake_time
    }

    /// Returns the file of the authorities whose certificates clients may show.
    pub(crate) fn client_authorities(&self) -> Option<&Path> {
        self.settings.client_authorities.as_ref().map(|authorities| authorities.file.as_path())
    }

    /// Whether clients are asked for certificates.
    pub(crate) fn asks_clients(&self) -> bool {
        self.settings.client_authorities.is_some()
    }
}

fn load_all(files: &[CertificateFiles]) -> Result<Vec<Arc<CertifiedKey>>, TlsError> {
    files.iter().map(|files| load_certificate(files).map(Arc::new)).collect()
}

fn client_verifier(
    authorities: Option<&ClientAuthorities>,
) -> Result<Option<Arc<dyn ClientCertVerifier>>, TlsError> {
    let Some(ClientAuthorities { file, required }) = authorities else { return Ok(None) };
    let roots = load_client_authorities(file)?;
    let mut builder =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::new(default_provider()));
    if !required {
        builder = builder.allow_unauthenticated();
    }
    let verifier =
        builder.build().map_err(|error| TlsError::Content(file.clone(), error.to_string()))?;
    Ok(Some(verifier))
}

/// TLS 1.2 and 1.3 with rustls's own choice of cipher suites. There is no early data, which could
/// be replayed (RFC 8446 section 8).
fn server_config(
    certificates: &Arc<Certificates>,
    verifier: Option<Arc<dyn ClientCertVerifier>>,
) -> Result<ServerConfig, TlsError> {
    let builder = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()?;
    let builder = match verifier {
        Some(verifier) => builder.with_client_cert_verifier(verifier),
        None => builder.with_no_client_auth(),
    };
    let mut config = builder.with_cert_resolver(Arc::clone(certificates) as _);
    config.alpn_protocols = vec![ALPN_HTTP2.to_vec(), ALPN_HTTP1.to_vec()];
    // Tickets, whose keys change every six hours: all loops have the same, so that a client resumes
    // on any.
    config.ticketer = Ticketer::new()?;
    Ok(config)
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls").field("settings", &self.settings).finish_non_exhaustive()
    }
}
