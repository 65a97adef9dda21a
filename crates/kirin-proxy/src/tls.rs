//! TLS to the servers of an upstream: the protocols that Kirin offers.

use std::sync::Arc;

use kirin_client_tls::{ClientTlsError, ClientTlsSettings};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;

/// Protocol names for the choice during the handshake (ALPN, RFC 7301).
pub(crate) const ALPN_HTTP2: &[u8] = b"h2";
const ALPN_HTTP1: &[u8] = b"http/1.1";

/// The TLS settings for the servers of an upstream. Sessions are resumed, so that most handshakes
/// are short.
#[derive(Clone, Debug, Default)]
pub struct ClientTls {
    pub(crate) config: Option<Arc<ClientConfig>>,
    /// The settings without HTTP/2, for requests that switch to another protocol.
    pub(crate) http1_config: Option<Arc<ClientConfig>>,
    /// The name that certificates must have, if it is not the server's.
    pub(crate) server_name: Option<ServerName<'static>>,
}

impl ClientTls {
    /// Reads the files of `settings`.
    pub fn load(settings: &ClientTlsSettings) -> Result<Self, ClientTlsError> {
        let mut config = settings.load()?;
        config.alpn_protocols = vec![ALPN_HTTP1.to_vec()];
        let http1_config = Some(Arc::new(config.clone()));
        config.alpn_protocols.insert(0, ALPN_HTTP2.to_vec());
        let server_name = settings.expected_name()?;
        Ok(Self { config: Some(Arc::new(config)), http1_config, server_name })
    }
}
