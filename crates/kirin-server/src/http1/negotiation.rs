//! The choice between HTTP/1 and HTTP/2 at the start of a connection with TLS.

use std::future::poll_fn;
use std::io;

use crate::connection::io::{Handshake, Io};
use crate::http1::sending;
use crate::server::Server;
use crate::tls::Tls;

/// The protocol of a connection after the TLS handshake.
pub(super) enum Negotiated {
    Http1,
    Http2,
    /// None: the handshake failed, or was an authority's.
    End,
}

/// Does the handshake if there is TLS. The table of open connections ends a handshake that takes
/// too long.
pub(super) async fn negotiate<H>(server: &Server<H>, io: &Io) -> Negotiated {
    let Some(tls) = &server.tls else { return Negotiated::Http1 };
    io.set_deadline(tls.handshake_time().as_secs().max(1));
    match shake_hands(server, tls, io).await {
        Ok(Some(handshake)) => {
            server.counters.handshakes.count(handshake.is_tls13, handshake.is_resumed);
            if let Some(client) = handshake.client {
                let _ = io.client.set(client);
            }
            if handshake.is_http2 { Negotiated::Http2 } else { Negotiated::Http1 }
        }
        Ok(None) => {
            sending::linger_shortly(io).await;
            Negotiated::End
        }
        Err(error) => {
            server.counters.handshakes.failed.add();
            tracing::debug!(peer = %io.peer, %error, "TLS handshake failed");
            sending::linger_shortly(io).await;
            Negotiated::End
        }
    }
}

/// Does the handshake. Returns no result for an authority: it learns what it wants to know by the
/// certificate, and then there is nothing to say (RFC 8737 section 3).
async fn shake_hands<H>(server: &Server<H>, tls: &Tls, io: &Io) -> io::Result<Option<Handshake>> {
    let mut handshake = poll_fn(|context| io.poll_handshake(context, tls)).await?;
    let Some(name) = handshake.asked_name.take() else { return Ok(Some(handshake)) };
    let certificate = match &server.challenge_certificates {
        Some(certificates) => certificates.find(&name).await,
        None => None,
    };
    tracing::debug!(peer = %io.peer, name, is_known = certificate.is_some(), "tls-alpn-01");
    // Without the certificate, the handshake fails by the rules for all clients.
    if let Err(error) = io.go_on_with_handshake(certificate) {
        poll_fn(|context| io.poll_flush(context)).await?;
        return Err(error);
    }
    let handshake = poll_fn(|context| io.poll_handshake(context, tls)).await?;
    server.counters.handshakes.count(handshake.is_tls13, handshake.is_resumed);
    Ok(None)
}
