//! What a request can do with its client before its response has begun: send informational
//! responses, and watch whether the client is still there.

use std::future::ready;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use http::StatusCode;
use kirin_http::client_watch::WatchedClient;
use kirin_http::field_lines::FieldLines;
use kirin_http::informational::InformationalClient;
use kirin_http::pace::Pace;

use super::connection::Http3Connection;
use super::sending::informational;
use super::stream::StreamState;

/// The client of one stream.
pub(super) struct StreamClient<H> {
    pub(super) connection: Rc<Http3Connection<H>>,
    pub(super) stream: Rc<StreamState>,
}

impl<H> StreamClient<H> {
    /// Sends an informational response. The limit on their number bounds what waits for a client
    /// that does not read.
    pub(super) fn inform(&self, status: StatusCode, fields: &FieldLines) -> io::Result<()> {
        self.stream.put_frame(informational(status, fields));
        let flushed = self.connection.flush(&self.stream);
        flushed.map(|_| ()).map_err(|_| io::ErrorKind::ConnectionReset.into())
    }
}

impl<H> InformationalClient for StreamClient<H> {
    fn send<'a>(
        &'a self,
        status: StatusCode,
        fields: &'a FieldLines,
        _: &'a mut Pace,
    ) -> Pin<Box<dyn Future<Output = io::Result<()>> + 'a>> {
        Box::pin(ready(self.inform(status, fields)))
    }
}

impl<H> WatchedClient for StreamClient<H> {
    /// Returns ready if the client has given the request up. That wakes the stream's task, which
    /// then polls this.
    fn poll_gone(&self, _: &mut Context<'_>) -> Poll<()> {
        if self.stream.is_given_up() { Poll::Ready(()) } else { Poll::Pending }
    }

    fn end_watch(&self) {}

    fn is_apart_from_body(&self) -> bool {
        true
    }
}
