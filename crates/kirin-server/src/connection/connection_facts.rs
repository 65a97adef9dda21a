//! What a connection itself tells of its client, before a trusted proxy says more.

use kirin_http::ClientCertificate;
use kirin_http::peer::Peer;

/// What a connection itself tells of its client.
pub(crate) struct ConnectionFacts<'a> {
    /// The client: the one that a PROXY header has named, or else the other end.
    pub(crate) peer: &'a Peer,
    /// The certificate that the client has presented.
    pub(crate) certificate: Option<&'a ClientCertificate>,
    pub(crate) is_secure: bool,
    /// The version of TLS, as nginx names it.
    pub(crate) tls_version: Option<&'static str>,
}
