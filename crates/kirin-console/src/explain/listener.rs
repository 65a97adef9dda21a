//! The listener at which a request arrives.

use kirin_acme::challenge_token;
use kirin_config::{Http3, ListenerConfig};
use kirin_http::{ListenAddress, RequestHead};

/// How a request arrives.
pub enum Arrival<'a> {
    /// At this listener.
    At(&'a ListenerConfig),
    /// At this listener, which speaks the other scheme.
    OtherScheme(&'a ListenerConfig),
    /// No listener has the port.
    Nowhere,
}

/// Returns the scheme that a listener speaks, and the versions of HTTP if it has TLS.
pub fn spoken_at(listener: &ListenerConfig) -> &'static str {
    match listener.tls.as_ref().map(|tls| tls.http3) {
        None => "http",
        Some(Http3::Required) => "https by HTTP/1.1, HTTP/2 and HTTP/3",
        Some(Http3::IfPossible) if !listener.proxy_protocol => {
            "https by HTTP/1.1, HTTP/2, and HTTP/3 if its UDP port can be bound"
        }
        Some(Http3::IfPossible | Http3::Off) => "https by HTTP/1.1 and HTTP/2",
    }
}

impl<'a> Arrival<'a> {
    /// Returns how a request of this scheme arrives at this port.
    pub fn find(listeners: &'a [ListenerConfig], is_secure: bool, port: u16) -> Self {
        let has_port = |listener: &&ListenerConfig| matches!(listener.address, ListenAddress::Tcp(address) if address.port() == port);
        let mut at_port = listeners.iter().filter(has_port);
        let first = at_port.clone().next();
        match (at_port.find(|listener| listener.tls.is_some() == is_secure), first) {
            (Some(listener), _) => Self::At(listener),
            (None, Some(listener)) => Self::OtherScheme(listener),
            (None, None) => Self::Nowhere,
        }
    }

    /// Returns the listener, if the request can arrive at it.
    pub fn listener(&self) -> Option<&'a ListenerConfig> {
        match self {
            Self::At(listener) => Some(listener),
            Self::OtherScheme(_) | Self::Nowhere => None,
        }
    }

    /// Returns the port of https to which the listener redirects a request. It does not redirect
    /// authorities that issue certificates, and peers that purge.
    pub fn redirect(&self, head: &RequestHead<'_>, is_purge: bool) -> Option<u16> {
        let is_served = is_purge || challenge_token(head.path).is_some();
        self.listener()?.redirect_to_https.filter(|_| !is_served)
    }

    /// Returns whether the listener answers by itself, or cannot be reached so.
    pub fn is_answered(&self, head: &RequestHead<'_>, is_purge: bool) -> bool {
        self.redirect(head, is_purge).is_some() || matches!(self, Self::OtherScheme(_))
    }
}
