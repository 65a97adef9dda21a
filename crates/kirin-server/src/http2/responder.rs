//! The sending half of a stream before its response has begun.

use std::cell::{Cell, RefCell, RefMut};
use std::future::ready;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use h2::server::SendResponse;
use http::StatusCode;
use kirin_http::client_watch::WatchedClient;
use kirin_http::field_lines::FieldLines;
use kirin_http::informational::InformationalClient;
use kirin_http::pace::Pace;

use super::response;

/// Sends the response of a stream, and informational responses ahead of it. The stream's task and
/// the body of the request share it.
pub(super) struct Responder(RefCell<SendResponse<Bytes>>);

impl Responder {
    pub(super) fn new(respond: SendResponse<Bytes>) -> Self {
        Self(RefCell::new(respond))
    }

    pub(super) fn borrow_mut(&self) -> RefMut<'_, SendResponse<Bytes>> {
        self.0.borrow_mut()
    }

    /// Sends an informational response.
    pub(super) fn inform(&self, status: StatusCode, fields: &FieldLines) -> Result<(), h2::Error> {
        self.0.borrow_mut().send_informational(response::informational(status, fields))
    }
}

impl InformationalClient for Responder {
    fn send<'a>(
        &'a self,
        status: StatusCode,
        fields: &'a FieldLines,
        _: &'a mut Pace,
    ) -> Pin<Box<dyn Future<Output = io::Result<()>> + 'a>> {
        Box::pin(ready(self.inform(status, fields).map_err(io::Error::other)))
    }
}

/// Whether the client has reset the stream. The stream's task checks this, and then polls the work
/// that waits for the client to disconnect.
#[derive(Default)]
pub(super) struct StreamReset(Cell<bool>);

impl StreamReset {
    pub(super) fn set(&self) {
        self.0.set(true);
    }

    pub(super) fn get(&self) -> bool {
        self.0.get()
    }
}

impl WatchedClient for StreamReset {
    fn poll_gone(&self, _: &mut Context<'_>) -> Poll<()> {
        if self.0.get() { Poll::Ready(()) } else { Poll::Pending }
    }

    fn end_watch(&self) {}

    fn is_apart_from_body(&self) -> bool {
        true
    }
}
