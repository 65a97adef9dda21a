//! A stream that has become a WebSocket (RFC 9220): its data goes to an application or an upstream,
//! and theirs to the client, until both have ended.

use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use http::StatusCode;
use kirin_h3::Code;
use kirin_http::body::Body;
use kirin_http::handler::Handler;
use kirin_http::request_body::BodySource;
use kirin_http::response::Response;

use super::body::Http3Source;
use super::connection::Http3Connection;
use super::stream::StreamState;
use crate::streams::exchange::Exchange;
use crate::streams::far_side::FarSide;

impl<H: Handler> Http3Connection<H> {
    /// Accepts a WebSocket, and passes its bytes until both sides have ended.
    pub(super) async fn tunnel(
        self: &Rc<Self>,
        stream: &Rc<StreamState>,
        mut response: Response,
        exchange: Exchange<H>,
    ) {
        let body = std::mem::replace(&mut response.body, Body::Empty);
        let Body::Tunnel(far) = body else { return };
        response.status = StatusCode::OK;
        // The answer to the key that the client has not sent.
        response.fields.remove("sec-websocket-accept");
        let far = FarSide::new(far);
        response.body = Body::Stream(Box::new(far.bytes()));
        let server = Rc::clone(&exchange.server);
        server.clock().now();
        let mut source = Http3Source::new(Rc::clone(self), Rc::clone(stream), &server, None);
        let mut sending = pin!(self.respond(stream, response, false, exchange));
        let mut waiting = Bytes::new();
        let mut far_takes_more = true;
        let mut far_limit = None;
        poll_fn(|context| {
            if far_takes_more {
                let passed = poll_to_far(&mut source, &mut waiting, &far, context);
                far_takes_more = passed.is_pending();
            }
            // It ends also when the client has given the request up.
            if sending.as_mut().poll(context).is_ready() {
                return Poll::Ready(());
            }
            if !far_takes_more && far.poll_silence(&mut far_limit, context).is_ready() {
                self.cut(stream, Code::RequestCancelled);
                return sending.as_mut().poll(context);
            }
            Poll::Pending
        })
        .await;
    }
}

/// Passes the client's data to the far side. Ready when one of them has ended that direction.
fn poll_to_far<H: Handler>(
    source: &mut Http3Source<H>,
    waiting: &mut Bytes,
    far: &FarSide,
    context: &mut Context<'_>,
) -> Poll<()> {
    loop {
        if waiting.is_empty() {
            match ready!(source.poll_data(context)) {
                Ok(Some(data)) => *waiting = data,
                Ok(None) | Err(_) => break,
            }
        }
        match ready!(far.tunnel().poll_write(context, waiting)) {
            Ok(count @ 1..) => waiting.advance(count),
            Ok(0) | Err(_) => break,
        }
    }
    far.tunnel().end_writing();
    Poll::Ready(())
}
