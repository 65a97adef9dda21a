//! HTTP/2 (RFC 9113) on the engine `kirin-h2`. The streams of a connection become the same
//! requests, for the same handler, as those of HTTP/1.
//!
//! A connection comes here from [`crate::http1::connection`], after a TLS handshake that chose `h2`
//! or when its first bytes are the preface. Its task reads frames, answers requests whose responses
//! are ready, and sends the bodies of all others in turn. A request that must wait is a task of its
//! own, so that it does not delay the others.

mod body;
mod connection;
mod outgoing;
mod request;
mod responder;
mod responding;
mod response;
mod stream;
mod tunnel;
mod waiting;

use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use kirin_h2::{Excess, Failure};
use kirin_http::handler::Handler;

use crate::connection::io::{ConnectionPhase, Io};
use crate::http1::sending;
use crate::server::InForce;
use connection::{Http2Connection, Turn};
use waiting::Waiting;

/// Length of `PRI * HTTP/2`, the part of the preface with which no HTTP/1 request can begin.
const PREFACE_START_BYTES: usize = 12;

/// Bytes that the kernel holds and has not sent yet, before it takes more.
const UNSENT_BYTES: u32 = 128 * 1024;

/// Returns whether a connection that begins with `received` speaks HTTP/2.
pub(crate) fn is_preface(received: &[u8]) -> bool {
    let length = received.len().min(kirin_h2::PREFACE.len());
    length >= PREFACE_START_BYTES && received.get(..length) == kirin_h2::PREFACE.get(..length)
}

/// Why a connection ended early.
#[derive(Debug, thiserror::Error)]
enum Http2Failure {
    #[error(transparent)]
    Http2(#[from] Failure),
    #[error(transparent)]
    Socket(#[from] std::io::Error),
}

/// Serves a connection until it ends.
pub(crate) async fn serve<H: Handler>(in_force: Rc<InForce<H>>, io: Rc<Io>) {
    let server = in_force.current();
    io.phase.set(ConnectionPhase::Streams);
    server.counters.http2_connections.add();
    io.set_deadline(server.deadlines.head);
    io.limit_unsent(UNSENT_BYTES);
    io.share.replace(server.share(io.client_peer()));
    let connection = Http2Connection::new(&server, &io);
    let (state, counters) = (Rc::clone(&server.state), Arc::clone(&server.counters));
    // Each stream is answered by the settings that are in force when it begins.
    drop(server);
    let mut waiting = Waiting::new();
    let mut stopping = pin!(state.stop.notified());
    stopping.as_mut().enable();
    let ended = poll_fn(|context: &mut Context<'_>| {
        if !waiting.is_stopping()
            && (state.stopping.get() || stopping.as_mut().poll(context).is_ready())
        {
            connection.shut_down();
            waiting.stop(&io);
        }
        match connection.poll_turn(&in_force, context) {
            Ok(Turn::Ended) => Poll::Ready(Ok(())),
            Ok(Turn::Waits { has_request, progress, on }) => {
                if has_request {
                    waiting.accept();
                }
                waiting.begin(on, progress, &io);
                Poll::Pending
            }
            Err(failure) => Poll::Ready(Err(failure)),
        }
    })
    .await;
    // From here on, sending fails in the streams that send. A stream that waits for an application
    // continues to wait, as in HTTP/1. Cutting the exchange would lose the worker, and clients
    // disconnect too often for that.
    connection.end_streams();
    match ended {
        Err(Http2Failure::Socket(error)) => {
            return tracing::debug!(peer = %io.peer, %error, "connection lost");
        }
        Err(Http2Failure::Http2(failure)) => {
            match failure.excess {
                Some(Excess::EarlyEnds) => counters.http2_resets.add(),
                Some(Excess::Frames) => counters.http2_floods.add(),
                None => {}
            }
            if failure.excess.is_some() {
                tracing::info!(peer = %io.peer, error = %failure, "HTTP/2 connection is ended because of its client");
            } else {
                tracing::debug!(peer = %io.peer, error = %failure, "HTTP/2 connection ended");
            }
        }
        Ok(()) => {}
    }
    // Sends GOAWAY and the responses to earlier requests.
    poll_fn(|context| Poll::Ready(connection.poll_send(context).is_ready())).await;
    drop(connection);
    sending::linger_shortly(&io).await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use kirin_h2::PREFACE;

    #[test]
    fn the_preface_is_recognized_by_its_first_line() {
        assert!(is_preface(PREFACE));
        assert!(is_preface(b"PRI * HTTP/2"));
        assert!(is_preface(&[PREFACE, b"\0\0\0\x04\0"].concat()));
        for other in [
            &b"PRI * HTTP/"[..],
            b"PRI * HTTP/2.1",
            b"PRI * HTTP/2.0\r\n\r\nSX",
            b"GET / HTTP/2.0\r\n\r\n",
            b"",
        ] {
            assert!(!is_preface(other), "{other:?}");
        }
    }
}
