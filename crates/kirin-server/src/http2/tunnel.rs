//! A stream that has become a WebSocket (RFC 8441): its data goes to an application or an upstream,
//! and theirs to the client, until both have ended.
//!
//! When the client has ended its side, the far side may still answer, unless it is silent for
//! [`FAR_SILENCE`].

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use http::StatusCode;
use kirin_http::body::{Body, BodyStream, StreamError, Tunnel};
use kirin_http::handler::Handler;
use kirin_http::response::Response;
use tokio::time::{Instant, Sleep};

use super::connection::Http2Connection;
use super::outgoing::Http2Exchange;
use super::response::write_head;
use super::stream::StreamState;
use crate::http1::tunnel::FAR_SILENCE;

/// The most bytes that are read from the far side at once.
const READ_BYTES: usize = 16 * 1024;

thread_local! {
    /// A buffer of the event loop, used within one call only.
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// The far side, which both directions use.
type FarSide = Rc<RefCell<Box<dyn Tunnel>>>;

/// What comes from the far side, as the body of the response.
struct FromFar {
    far: FarSide,
    /// The time of the last bytes.
    last: Rc<RefCell<Instant>>,
}

impl BodyStream for FromFar {
    fn poll_chunk(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, StreamError>>> {
        let read = BUFFER.with_borrow_mut(|buffer| {
            buffer.resize(READ_BYTES, 0);
            let count = ready!(self.far.borrow_mut().poll_read(context, buffer))?;
            Poll::Ready(io::Result::Ok(Bytes::copy_from_slice(&buffer[..count])))
        });
        let bytes = ready!(read).map_err(|error| StreamError(error.to_string()));
        *self.last.borrow_mut() = Instant::now();
        Poll::Ready(match bytes {
            Ok(bytes) if bytes.is_empty() => None,
            bytes => Some(bytes),
        })
    }

    fn length(&self) -> Option<u64> {
        None
    }
}

impl<H: Handler> Http2Connection<H> {
    /// Accepts a WebSocket, and passes its bytes until both sides have ended.
    pub(super) async fn tunnel(
        self: &Rc<Self>,
        state: &Rc<StreamState<H>>,
        mut response: Response,
        mut exchange: Http2Exchange<H>,
    ) {
        let body = std::mem::replace(&mut response.body, Body::Empty);
        let Body::Tunnel(far) = body else { return };
        let server = Rc::clone(&exchange.server);
        response.status = StatusCode::OK;
        // The answer to the key that the client has not sent.
        response.fields.remove("sec-websocket-accept");
        let far: FarSide = Rc::new(RefCell::new(far));
        let last = Rc::new(RefCell::new(Instant::now()));
        let from_far = FromFar { far: Rc::clone(&far), last: Rc::clone(&last) };
        response.body = Body::Stream(Box::new(from_far));
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
            state.set_task(context);
            if far_takes_more {
                far_takes_more = self.poll_to_far(state, &far, context).is_pending();
            }
            if sending.as_mut().poll(context).is_ready() {
                return Poll::Ready(());
            }
            if !far_takes_more && poll_silence(&mut far_limit, &last, context).is_ready() {
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
        let mut far = far.borrow_mut();
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

/// Returns ready when the far side was silent for too long after the client's end.
fn poll_silence(
    limit: &mut Option<Pin<Box<Sleep>>>,
    last: &Rc<RefCell<Instant>>,
    context: &mut Context<'_>,
) -> Poll<()> {
    let limit = limit.get_or_insert_with(|| Box::pin(tokio::time::sleep(FAR_SILENCE)));
    ready!(limit.as_mut().poll(context));
    let end = *last.borrow() + FAR_SILENCE;
    if end <= Instant::now() {
        return Poll::Ready(());
    }
    limit.as_mut().reset(end);
    limit.as_mut().poll(context)
}
