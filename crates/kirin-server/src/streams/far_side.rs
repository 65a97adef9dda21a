//! The far side of a WebSocket over HTTP/2 or HTTP/3: an application or an upstream.
//!
//! When the client has ended its side, the far side may still answer, unless it is silent for
//! [`FAR_SILENCE`].

use std::cell::{Cell, RefCell, RefMut};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use kirin_http::body::{BodyStream, StreamError, Tunnel};
use tokio::time::{Instant, Sleep};

use crate::http1::tunnel::FAR_SILENCE;

/// The most bytes that are read from the far side at once.
const READ_BYTES: usize = 16 * 1024;

thread_local! {
    /// A buffer of the event loop, used within one call only.
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// The far side, which both directions use.
#[derive(Clone)]
pub(crate) struct FarSide {
    tunnel: Rc<RefCell<Box<dyn Tunnel>>>,
    /// The time of the last bytes that came from it.
    last: Rc<Cell<Instant>>,
}

/// What comes from the far side, as the body of the response.
struct FromFar(FarSide);

impl FarSide {
    pub(crate) fn new(tunnel: Box<dyn Tunnel>) -> Self {
        Self { tunnel: Rc::new(RefCell::new(tunnel)), last: Rc::new(Cell::new(Instant::now())) }
    }

    /// Returns what comes from it.
    pub(crate) fn bytes(&self) -> impl BodyStream + 'static {
        FromFar(self.clone())
    }

    pub(crate) fn tunnel(&self) -> RefMut<'_, Box<dyn Tunnel>> {
        self.tunnel.borrow_mut()
    }

    /// Returns ready when the far side was silent for too long after the client's end.
    pub(crate) fn poll_silence(
        &self,
        limit: &mut Option<Pin<Box<Sleep>>>,
        context: &mut Context<'_>,
    ) -> Poll<()> {
        let limit = limit.get_or_insert_with(|| Box::pin(tokio::time::sleep(FAR_SILENCE)));
        ready!(limit.as_mut().poll(context));
        let end = self.last.get() + FAR_SILENCE;
        if end <= Instant::now() {
            return Poll::Ready(());
        }
        limit.as_mut().reset(end);
        limit.as_mut().poll(context)
    }
}

impl BodyStream for FromFar {
    fn poll_chunk(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, StreamError>>> {
        let read = BUFFER.with_borrow_mut(|buffer| {
            buffer.resize(READ_BYTES, 0);
            let count = ready!(self.0.tunnel().poll_read(context, buffer))?;
            Poll::Ready(io::Result::Ok(Bytes::copy_from_slice(&buffer[..count])))
        });
        let bytes = ready!(read).map_err(|error| StreamError(error.to_string()));
        self.0.last.set(Instant::now());
        Poll::Ready(match bytes {
            Ok(bytes) if bytes.is_empty() => None,
            bytes => Some(bytes),
        })
    }

    fn length(&self) -> Option<u64> {
        None
    }
}
