//! What is kept of a request until its response has been sent.

use std::rc::Rc;
use std::time::Instant;

use kirin_client_bytes::{ClientShare, Reservation};
use kirin_http::handler::{Later, Origin};
use kirin_http::request::{BodyLength, RequestHead};
use kirin_http::request_id::RequestId;
use kirin_http::response::Response;

use crate::observation::{RequestRecord, ResponseRecord};
use crate::server::Server;
use crate::streams::kind::RequestKind;

/// The parts of a request that are kept until its response has been sent.
pub(crate) struct Exchange<H> {
    pub(crate) server: Rc<Server<H>>,
    pub(crate) record: Option<RequestRecord>,
    pub(crate) share: ClientShare,
    /// Counts the copy of a long head.
    head: Option<Reservation>,
}

impl<H> Exchange<H> {
    /// Keeps the parts of a request that the handler has answered. `started` is the result of
    /// [`Observers::begin`](crate::observation::Observers::begin).
    pub(crate) fn new(
        server: &Rc<Server<H>>,
        started: Option<Instant>,
        request: &RequestHead<'_>,
        origin: Origin<'_>,
    ) -> Self {
        let record = server.observers.record(started, request, origin);
        Self { server: Rc::clone(server), record, share: server.share(origin.peer), head: None }
    }

    /// Keeps the record of a request that is refused.
    pub(crate) fn refused(server: &Rc<Server<H>>, record: Option<RequestRecord>) -> Self {
        let share = ClientShare::default();
        Self { server: Rc::clone(server), record, share, head: None }
    }

    /// Tells the observers about the response. So many bytes of the request's body have come.
    pub(crate) fn end(mut self, received_bytes: u64, response: ResponseRecord) {
        if let Some(record) = self.record.take() {
            self.server.clock().now();
            self.server.observers.end(record, &ResponseRecord { received_bytes, ..response });
        }
    }
}

/// A request whose response must be waited for.
pub(crate) struct Unanswered<H> {
    pub(crate) later: Later,
    pub(crate) body: BodyLength,
    pub(crate) expects_continue: bool,
    pub(crate) kind: RequestKind,
    pub(crate) id: RequestId,
    pub(crate) exchange: Exchange<H>,
}

impl<H> Unanswered<H> {
    /// Returns a request that `later` answers. If there is no room for the copy of its head, the
    /// answer is an error.
    pub(crate) fn new(
        later: Later,
        (request, origin, kind): (&RequestHead<'_>, Origin<'_>, RequestKind),
        mut exchange: Exchange<H>,
    ) -> Self {
        let later = match exchange.share.reserve_head(request.len_bytes()) {
            Ok(reserved) => {
                exchange.head = reserved;
                later
            }
            Err(_) => Box::new(|_| Box::pin(async { Response::no_room() }) as _),
        };
        Self {
            later,
            body: request.body,
            expects_continue: request.expects_continue,
            kind,
            id: origin.notes.id().clone(),
            exchange,
        }
    }
}
