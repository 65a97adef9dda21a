//! A stream that has become a WebSocket (RFC 8441): its data goes to an application or an upstream,
//! and theirs to the client, until both have ended.

use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Buf;
use http::StatusCode;
use kirin_http::body::Body;
use kirin_http::handler::Handler;
use kirin_http::response::Response;

use super::connection::Http2Connection;
use super::response::write_head;
use super::stream::StreamState;
use crate::streams::exchange::Exchange;
use crate::streams::far_side::FarSide;

impl<H: Handler> Http2Connection<H> {
    /// Accepts a WebSocket, and passes its bytes until both sides have ended.
    pub(super) async fn tunnel(
        self: &Rc<Self>,
        state: &Rc<StreamState<H>>,
        mut response: Response,
        mut exchange: Exchange<H>,
    ) {
        let body = std::mem::replace(&mut response.body, Body::Empty);
        let Body::Tunnel(far) = body else { return };
        let server = Rc::clone(&exchange.server);
        response.status = StatusCode::OK;
        // The answer to the key that the client has not sent.
        response.fields.remove("sec-websocket-accept");
        let far = FarSide::new(far);
        response.body = Body::Stream(Box::new(far.bytes()));
        server.observers.will_send(&mut exchange.record, &response);
        {
            server.clock().now();
            let engine = &mut self.engine.borrow_mut();
            write_head(engine, state.id, &response, false, server.clock());
        }
        let source = self.hand_over(state, response, exchange);
        self.wake();
        let Some(source) = source else { return };
        let mut sending = pin!(self.feed(state, source));
        let mut far_takes_more = true;
        let mut far_limit = None;
        poll_fn(|context| {
            if state.is_reset() {
                return Poll::Ready(());
            }
            state.task.set(context);
            if far_takes_more {
                far_takes_more = self.poll_to_far(state, &far, context).is_pending();
            }
            if sending.as_mut().poll(context).is_ready() {
                return Poll::Ready(());
            }
            if !far_takes_more && far.poll_silence(&mut far_limit, context).is_ready() {
                self.cut(state);
                return Poll::Ready(());
            }
            Poll::Pending
        })
        .await;
    }

    /// Passes the client's data to the far side. Ready when one of them has ended that direction.
    fn poll_to_far(
        &self,
        state: &StreamState<H>,
        far: &FarSide,
        context: &mut Context<'_>,
    ) -> Poll<()> {
        let mut far = far.tunnel();
        let mut incoming = state.incoming.borrow_mut();
        let mut passed = 0;
        let is_over = loop {
            if incoming.data.is_empty() {
                break incoming.ended;
            }
            match far.poll_write(context, &incoming.data) {
                Poll::Ready(Ok(count @ 1..)) => {
                    incoming.data.advance(count);
                    passed += count;
                }
                Poll::Ready(Ok(0) | Err(_)) => break true,
                Poll::Pending => break false,
            }
        };
        drop(incoming);
        if passed > 0 {
            self.release(state, passed);
        }
        if !is_over {
            return Poll::Pending;
        }
        far.end_writing();
        Poll::Ready(())
    }
}
