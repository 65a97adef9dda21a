//! Requests and connections behind trusted proxies: removes their PROXY header, and finds out which
//! client a request is from.
//!
//! [`proxy_protocol`] and [`forwarded`](kirin_http::forwarded) parse what the proxies write.

use std::future::poll_fn;
use std::io;

use kirin_http::handler::{Origin, TrustedProxy};
use kirin_http::request::RequestHead;
use kirin_http::request_id::RequestId;
use kirin_http::request_notes::RequestNotes;
use kirin_http::trace_context::TraceContext;
use rustix::net::RecvFlags;

use crate::connection::connection_facts::ConnectionFacts;
use crate::connection::io::Io;
use crate::connection::proxy_protocol::{self, MAX_HEADER_BYTES, ParsedHeader};
use crate::server::Server;

/// Seconds that a load balancer may take for its header. It has all of it before it connects.
const HEADER_SECONDS: u64 = 5;

/// Calls `answer` with a request and its origin: the client that trusted proxies name, or else the
/// peer of the connection. The caller has read the clock.
pub(crate) fn with_origin<H, R>(
    server: &Server<H>,
    facts: &ConnectionFacts<'_>,
    head: &RequestHead<'_>,
    answer: impl FnOnce(&RequestHead<'_>, Origin<'_>) -> R,
) -> R {
    let peer = facts.peer;
    let forwarding = server.forwarding.as_deref().filter(|known| known.trusted.contains(peer));
    let notes = notes(server, head, forwarding.is_some());
    if facts.is_secure {
        notes.set_tls_version(facts.tls_version);
    }
    let origin = server.origin(facts, &notes);
    let Some(forwarding) = forwarding else {
        return answer(head, origin);
    };
    let origin = Origin {
        proxy: Some(TrustedProxy { peer: origin.peer, fields: &forwarding.fields }),
        ..origin
    };
    let Some(client) = forwarding.client(origin.peer, head.fields) else {
        return answer(head, origin);
    };
    let secure = client.secure.unwrap_or(origin.secure);
    let head = RequestHead { host: client.host.unwrap_or(head.host), ..head.clone() };
    answer(&head, Origin { peer: &client.peer, secure, ..origin })
}

/// Returns the notes of a request: its id, which a trusted proxy may have given it, and its trace.
fn notes<H>(server: &Server<H>, head: &RequestHead<'_>, is_trusted: bool) -> RequestNotes {
    let ids = &server.state.request_ids;
    let taken = match is_trusted {
        true => head.field("x-request-id").and_then(RequestId::from_proxy),
        false => None,
    };
    let id = taken.unwrap_or_else(|| RequestId::Made(ids.next_number()));
    let trace = server.trace_sampling.map(|sampling| {
        TraceContext::continued(head.field("traceparent"), is_trusted, sampling, ids)
    });
    RequestNotes::new(id, trace)
}

/// Removes the PROXY header from the start of the connection. Returns whether a trusted peer has
/// sent a valid one.
pub(crate) async fn receive<H>(server: &Server<H>, io: &Io) -> bool {
    if !server.trusts(&io.peer) {
        tracing::debug!(peer = %io.peer, listener = %server.local, "closed: the PROXY protocol is taken from trusted peers only");
        return false;
    }
    io.set_deadline(HEADER_SECONDS);
    match read_header(io).await {
        Ok(()) if io.announced.get().is_some() => match server.admit_address(io) {
            Ok(()) => true,
            Err(refusal) => {
                tracing::debug!(peer = %io.client_peer(), listener = %server.local, "closed: {refusal}");
                false
            }
        },
        Ok(()) => true,
        // The load balancer only checks whether the server accepts connections.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => false,
        Err(error) => {
            tracing::warn!(peer = %io.peer, listener = %server.local, %error, "closed: no PROXY protocol header");
            false
        }
    }
}

/// Takes exactly the header. TLS or a request behind it stays in the socket.
async fn read_header(io: &Io) -> io::Result<()> {
    let mut header = vec![0; MAX_HEADER_BYTES];
    let mut taken = 0;
    loop {
        let peeked =
            poll_fn(|context| io.poll_receive(context, &mut header[taken..], RecvFlags::PEEK))
                .await?;
        if peeked == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let invalid = |error| io::Error::new(io::ErrorKind::InvalidData, error);
        let parsed = proxy_protocol::parse(&header[..taken + peeked]).map_err(invalid)?;
        let end = match &parsed {
            ParsedHeader::Complete { length, .. } => *length,
            // All bytes belong to the header. They are taken, so that the next peek waits for more.
            ParsedHeader::Partial => taken + peeked,
        };
        while taken < end {
            let rest = &mut header[taken..end];
            match poll_fn(|context| io.poll_receive(context, rest, RecvFlags::empty())).await? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => taken += count,
            }
        }
        if let ParsedHeader::Complete { client, .. } = parsed {
            if let Some(client) = client {
                // It is set here only, once for each connection.
                let _ = io.announced.set(Box::new(client));
            }
            return Ok(());
        }
    }
}
