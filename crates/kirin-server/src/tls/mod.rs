//! TLS for a listener: its certificates and the settings made from them. Both can be exchanged
//! while it serves.
//!
//! The program makes one for each listener with `[listener.tls]`, and all event loops share it. A
//! new connection uses the current settings. An open connection keeps the settings that it began
//! with.

pub mod certificates;
pub mod challenge;
pub(crate) mod client_certificate;
mod early_data;
mod post_quantum;
pub(crate) mod stream;
pub(crate) mod tickets;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use quinn_proto::crypto::rustls::QuicServerConfig;
use rustls::ServerConfig;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::sign::CertifiedKey;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::tls::certificates::{
    Certificates, ServedCertificate, load_certificate, load_client_authorities,
};
use crate::tls::early_data::accept_early_data;
use crate::tls::stream::TlsStream;
use crate::tls::tickets::{ClientCheck, TicketSecret, Tickets};

/// The protocol of a connection, chosen in the handshake by ALPN (RFC 7301).
pub(crate) const ALPN_HTTP2: &[u8] = b"h2";
const ALPN_HTTP1: &[u8] = b"http/1.1";
const ALPN_HTTP3: &[u8] = b"h3";

/// The settings as the configuration gives them.
#[derive(Clone, Debug)]
pub struct TlsSettings {
    /// The certificates. The first is for clients that name no server, or an unknown one. If there
    /// are none, handshakes fail until [`Tls::install`] is called.
    pub certificates: Vec<CertificateFiles>,
    /// The authorities of client certificates. `None`: clients are not asked for a certificate.
    pub client_authorities: Option<ClientAuthorities>,
    /// How long a handshake may take.
    pub handshake_time: Duration,
    /// The secret of session tickets that several machines have. `None`: the listener has one of
    /// its own.
    pub ticket_secret: Option<TicketSecret>,
    /// Whether clients of HTTP/3 that come again may send requests in their first packet.
    pub early_data: bool,
}

/// The files of a certificate, in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The certificate, then the intermediate certificates up to its authority.
    pub chain: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// The authorities of client certificates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientAuthorities {
    /// The file with the authorities' certificates, in PEM.
    pub file: PathBuf,
    /// Whether a client without a certificate is refused.
    pub required: bool,
}

/// The reason why a certificate or key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read {0}: {1}")]
    Read(PathBuf, #[source] std::io::Error),
    /// A file does not contain what it should.
    #[error("{0}: {1}")]
    Content(PathBuf, String),
    /// The certificate and the key do not match, or cannot be used.
    #[error("certificate {chain} with key {key}: {error}")]
    Pair {
        /// The certificate's file.
        chain: PathBuf,
        /// The key's file.
        key: PathBuf,
        /// The reason.
        error: rustls::Error,
    },
    /// No TLS settings can be made from the certificates.
    #[error("TLS: {0}")]
    Settings(#[from] rustls::Error),
}

/// The certificates and settings of a listener.
pub struct Tls {
    settings: ArcSwap<TlsSettings>,
    /// Whether clients are asked for certificates. Each request asks that.
    asks_clients: AtomicBool,
    certificates: Arc<Certificates>,
    config: ArcSwap<ServerConfig>,
    quic: ArcSwap<QuicServerConfig>,
    ticket_secret: ArcSwap<TicketSecret>,
}

/// Certificates and settings that are ready to take the place of those of a listener.
pub struct Renewal {
    settings: Arc<TlsSettings>,
    /// `None`: those that are there stay.
    certificates: Option<Vec<Arc<CertifiedKey>>>,
    config: ServerConfig,
    quic: QuicServerConfig,
    ticket_secret: TicketSecret,
}

impl Tls {
    /// Reads the files that `settings` name.
    pub fn load(settings: TlsSettings) -> Result<Self, TlsError> {
        let certificates = Arc::new(Certificates::new(load_all(&settings.certificates)?));
        let secret = settings.ticket_secret.clone().map_or_else(TicketSecret::random, Ok)?;
        let config = server_config(&certificates, &settings, &secret)?;
        Ok(Self {
            quic: ArcSwap::from_pointee(quic_config(&config, &settings)?),
            ticket_secret: ArcSwap::from_pointee(secret),
            asks_clients: AtomicBool::new(settings.client_authorities.is_some()),
            settings: ArcSwap::from_pointee(settings),
            certificates,
            config: ArcSwap::from_pointee(config),
        })
    }

    /// Prepares to take over the settings of `other`, and the certificates that it has read.
    pub fn renewal_by(&self, other: &Self) -> Result<Renewal, TlsError> {
        let (certificates, settings) = (other.certificates.all(), other.settings.load_full());
        let ticket_secret = match (&settings.ticket_secret, &self.settings.load().ticket_secret) {
            (Some(shared), _) => shared.clone(),
            (None, Some(_)) => TicketSecret::random()?,
            // It stays, so that clients can resume their sessions.
            (None, None) => TicketSecret::clone(&self.ticket_secret.load()),
        };
        let config = server_config(&self.certificates, &settings, &ticket_secret)?;
        // If neither settings name certificates, the current ones come from [`Tls::install`].
        let are_installed =
            settings.certificates.is_empty() && self.settings.load().certificates.is_empty();
        let certificates = (!are_installed).then_some(certificates);
        let quic = quic_config(&config, &settings)?;
        Ok(Renewal { settings, certificates, config, quic, ticket_secret })
    }

    /// Uses other certificates and settings for new connections.
    pub fn renew(&self, renewal: Renewal) {
        let Renewal { settings, certificates, config, quic, ticket_secret } = renewal;
        if let Some(certificates) = certificates {
            self.certificates.replace(certificates);
        }
        self.config.store(Arc::new(config));
        self.quic.store(Arc::new(quic));
        self.ticket_secret.store(Arc::new(ticket_secret));
        self.asks_clients.store(settings.client_authorities.is_some(), Ordering::Relaxed);
        self.settings.store(settings);
    }

    /// Uses the certificates in `files` for new connections, in place of the current ones. This is
    /// for certificates that the settings do not name. A chain and its key may be in one file.
    pub fn install(&self, files: &[CertificateFiles]) -> Result<(), TlsError> {
        self.certificates.replace(load_all(files)?);
        Ok(())
    }

    /// Returns the certificates that new connections may get.
    pub fn served_certificates(&self) -> Vec<ServedCertificate> {
        self.certificates.served()
    }

    /// Returns the secret of its session tickets for the program that takes over. `None` if that
    /// reads it from a file.
    pub fn ticket_secret(&self) -> Option<TicketSecret> {
        let is_own = self.settings.load().ticket_secret.is_none();
        is_own.then(|| TicketSecret::clone(&self.ticket_secret.load()))
    }

    /// Takes over the secret of session tickets of another program, unless the settings have one.
    pub fn take_over_tickets(&self, secret: TicketSecret) -> Result<(), TlsError> {
        let settings = self.settings.load();
        if settings.ticket_secret.is_none() {
            let config = server_config(&self.certificates, &settings, &secret)?;
            self.quic.store(Arc::new(quic_config(&config, &settings)?));
            self.config.store(Arc::new(config));
            self.ticket_secret.store(Arc::new(secret));
        }
        Ok(())
    }

    /// Returns the files that the settings name.
    pub fn files(&self) -> Vec<PathBuf> {
        let settings = self.settings.load();
        let own = settings.certificates.iter().flat_map(|files| [&files.chain, &files.key]);
        own.cloned().chain(self.client_authorities()).collect()
    }

    /// Begins TLS on a new connection.
    pub(crate) fn stream<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        socket: S,
    ) -> io::Result<TlsStream<S>> {
        TlsStream::new(socket, self.config.load_full()).map_err(io::Error::other)
    }

    /// Returns the settings for new connections of QUIC.
    pub(crate) fn quic(&self) -> Arc<QuicServerConfig> {
        self.quic.load_full()
    }

    /// Returns whether clients of HTTP/3 may send requests in early data.
    pub(crate) fn has_early_data(&self) -> bool {
        self.settings.load().early_data
    }

    /// Returns how long a handshake may take.
    pub(crate) fn handshake_time(&self) -> Duration {
        self.settings.load().handshake_time
    }

    /// Returns the file of the authorities whose certificates clients may show.
    pub(crate) fn client_authorities(&self) -> Option<PathBuf> {
        let settings = self.settings.load();
        settings.client_authorities.as_ref().map(|authorities| authorities.file.clone())
    }

    /// Returns whether clients are asked for certificates.
    pub(crate) fn asks_clients(&self) -> bool {
        self.asks_clients.load(Ordering::Relaxed)
    }
}

fn load_all(files: &[CertificateFiles]) -> Result<Vec<Arc<CertifiedKey>>, TlsError> {
    files.iter().map(|files| load_certificate(files).map(Arc::new)).collect()
}

/// Returns what verifies the certificates of clients, and its hash for the tickets.
fn client_verifier(
    authorities: Option<&ClientAuthorities>,
) -> Result<(Option<Arc<dyn ClientCertVerifier>>, ClientCheck), TlsError> {
    let Some(ClientAuthorities { file, required }) = authorities else { return Ok(<_>::default()) };
    let roots = load_client_authorities(file)?;
    let check = ClientCheck::new(&roots, *required);
    let mut builder =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), post_quantum::provider());
    if !required {
        builder = builder.allow_unauthenticated();
    }
    let verifier =
        builder.build().map_err(|error| TlsError::Content(file.clone(), error.to_string()))?;
    Ok((Some(verifier), check))
}

/// Returns settings for TLS 1.2 and 1.3 with the cipher suites that rustls chooses, and a key
/// exchange more. There is no early data over TCP, because it could be replayed (RFC 8446 section
/// 8).
fn server_config(
    certificates: &Arc<Certificates>,
    settings: &TlsSettings,
    ticket_secret: &TicketSecret,
) -> Result<ServerConfig, TlsError> {
    let (verifier, clients) = client_verifier(settings.client_authorities.as_ref())?;
    let builder = ServerConfig::builder_with_provider(post_quantum::provider())
        .with_safe_default_protocol_versions()?;
    let builder = match verifier {
        Some(verifier) => builder.with_client_cert_verifier(verifier),
        None => builder.with_no_client_auth(),
    };
    let mut config = builder.with_cert_resolver(Arc::clone(certificates) as _);
    config.alpn_protocols = vec![ALPN_HTTP2.to_vec(), ALPN_HTTP1.to_vec()];
    // All event loops have the same keys, so that a client can resume its session on any of them.
    config.ticketer = Arc::new(Tickets::new(ticket_secret, clients));
    Ok(config)
}

/// Returns the same settings for QUIC, which has TLS 1.3 and HTTP/3 only. Sessions with early data
/// do not outlive them, because a client holds to the limits that it was told.
fn quic_config(
    config: &ServerConfig,
    settings: &TlsSettings,
) -> Result<QuicServerConfig, TlsError> {
    let mut config = config.clone();
    config.alpn_protocols = vec![ALPN_HTTP3.to_vec()];
    if settings.early_data {
        accept_early_data(&mut config);
    }
    QuicServerConfig::try_from(config)
        .map_err(|error| TlsError::Settings(rustls::Error::General(error.to_string())))
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls").field("settings", &self.settings).finish_non_exhaustive()
    }
}
