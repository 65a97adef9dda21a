//! The choice between HTTP/1 and HTTP/2 at the start of a connection with TLS.

use std::future::poll_fn;

use crate::connection::io::Io;
use crate::http1::sending;
use crate::server::Server;

/// The protocol of a connection after the TLS handshake.
pub(super) enum Negotiated {
    Http1,
    Http2,
    /// None: the handshake failed.
    End,
}

/// Does the handshake if there is TLS. The table of open connections ends a handshake that takes
/// too long.
pub(super) async fn negotiate<H>(server: &Server<H>, io: &Io) -> Negotiated {
    let Some(tls) = &server.tls else { return Negotiated::Http1 };
    io.set_deadline(tls.handshake_time().as_secs().max(1));
    match poll_fn(|context| io.poll_handshake(context, tls)).await {
        Ok(handshake) => {
            server.counters.handshakes.count(handshake.is_tls13, handshake.is_resumed);
            if let Some(client) = handshake.client {
                let _ = io.client.set(client);
            }
            if handshake.is_http2 { Negotiated::Http2 } else { Negotiated::Http1 }
        }
        Err(error) => {
            server.counters.handshakes.failed.add();
            tracing::debug!(peer = %io.peer, %error, "TLS handshake failed");
            sending::linger_shortly(io).await;
            Negotiated::End
        }
    }
}
