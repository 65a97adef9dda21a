//! A client connection over HTTP/1, from its first byte to its last. It reads, parses, answers and
//! writes, again and again.
//!
//! The hot path is [`read_and_answer`]: a request for something in memory is read into the loop's
//! scratch buffer, parsed in place and answered with one vectored write, without a buffer or a task
//! of its own. Everything that must wait (an application, a large file, a slow reader) leaves the
//! hot path through [`settle`].

use std::future::poll_fn;
use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use kirin_client_bytes::Resource;
use kirin_http::handler::{Answer, Handler, Origin};
use kirin_http::request::{self, BodyLength, MAX_FIELDS, Parsed, Reject, RequestHead};
use kirin_http::request_scope::{InRequest, RequestScope};
use kirin_http::response::Response;

use crate::connection::io::{ConnectionPhase, Io};
use crate::connection::open_connections::OpenConnections;
use crate::connection::proxied;
use crate::http1::memory_response::{is_in_memory, write_response};
use crate::http1::negotiation::{Negotiated, negotiate};
use crate::http1::output::Output;
use crate::http1::response_writer::Http1Exchange;
use crate::http1::settling::{PendingRequest, Work, settle};
use crate::http2;
use crate::observation::ResponseRecord;
use crate::server::{InForce, Server};

/// Responses to pipelined requests are gathered up to this size before they are written.
const GATHERED_BYTES: usize = 64 * 1024;

/// Memory for unread bytes up to this size is not counted, because most connections have none.
const UNCOUNTED_BYTES: usize = 4 * 1024;

/// The largest body in memory that is written together with other responses, and logged before the
/// client has taken it. A socket takes no more than that at once. A longer response may be cut, so
/// that its log line must wait for its end.
const GATHERED_BODY_BYTES: u64 = 256 * 1024;

/// The next step after the requests that could be answered at once.
enum ConnectionStep<'a> {
    /// Wait for the next request, or for the rest of one.
    Again,
    /// The connection has ended.
    End,
    /// The client speaks HTTP/2. Its first bytes are in `unread`.
    Http2,
    /// Something must be waited for.
    Settle(Settling<'a>),
}

/// The work that must wait. It returns whether the connection continues.
type Settling<'a> = Pin<Box<dyn Future<Output = io::Result<bool>> + 'a>>;

/// Serves one connection until it ends.
///
/// `accepted_by` are the settings with which it was accepted: they say whether there is TLS.
pub(crate) async fn run<H: Handler>(
    in_force: Rc<InForce<H>>,
    accepted_by: Rc<Server<H>>,
    io: Rc<Io>,
) {
    let server = accepted_by;
    let _entry = OpenConnections::enter(&server.state.open, &io);
    // Boxed, like everything that an idle connection should not carry.
    // One of another process has sent its header there.
    let needs_header = server.proxy_protocol && !io.has_begun.get() && io.announced.get().is_none();
    if needs_header && !Box::pin(proxied::receive(&server, &io)).await {
        return;
    }
    if server.tls.is_some() {
        match Box::pin(negotiate(&server, &io)).await {
            Negotiated::Http1 => {}
            Negotiated::Http2 => return Box::pin(http2::serve(in_force, io)).await,
            Negotiated::End => return,
        }
    }
    // One of another process is idle already.
    let has_begun = io.has_begun.get();
    io.set_deadline(if has_begun { server.deadlines.keep_alive } else { server.deadlines.head });
    // An idle connection must not keep settings that are no longer in force.
    drop(server);
    let mut read = true;
    loop {
        let has_successor = in_force.borrow().state.has_successor.get();
        if has_successor && Box::pin(leave(&in_force, &io)).await {
            return;
        }
        match poll_fn(|context| read_and_answer(&in_force, &io, context, read)).await {
            Ok(ConnectionStep::Again) => read = true,
            Ok(ConnectionStep::End) => return io.end_tls(),
            Ok(ConnectionStep::Http2) => {
                return Box::pin(http2::serve(Rc::clone(&in_force), Rc::clone(&io))).await;
            }
            Ok(ConnectionStep::Settle(settling)) => match settling.await {
                Ok(true) => read = io.unread.borrow().is_empty(),
                Ok(false) => return,
                Err(error) => {
                    tracing::debug!(peer = %io.peer, %error, "connection lost");
                    return;
                }
            },
            Err(error) => {
                tracing::debug!(peer = %io.peer, %error, "connection lost");
                return;
            }
        }
    }
}

/// Gives the connection to another process if it is idle. The next request may be in its socket
/// already. Returns whether it has left.
async fn leave<H>(in_force: &InForce<H>, io: &Io) -> bool {
    let server = in_force.current();
    let successor = server.state.successor.borrow().clone();
    match successor.zip(io.leave_idle(server.proxy_protocol)) {
        // Without a receiver the connection ends.
        Some((successor, idle)) => {
            _ = successor.send(idle).await;
            true
        }
        None => false,
    }
}

/// Reads once (unless pipelined requests are left) and answers every complete request.
fn read_and_answer<'a, H: Handler>(
    in_force: &InForce<H>,
    io: &'a Rc<Io>,
    context: &mut Context<'_>,
    read: bool,
) -> Poll<io::Result<ConnectionStep<'a>>> {
    let server = &*in_force.borrow();
    let mut scratch = server.state.scratch.borrow_mut();
    let mut received: &[u8] = &[];
    if read {
        let count = ready!(io.poll_read(context, &mut scratch))?;
        if count == 0 {
            return Poll::Ready(Ok(ConnectionStep::End));
        }
        received = &scratch[..count];
    }
    // Everything that follows at once has this time.
    server.clock().now();
    let mut unread = io.unread.take();
    if unread.is_empty() {
        let (used, step) = answer_all(server, io, context, received)?;
        if used < received.len() {
            *io.unread.borrow_mut() = received[used..].to_vec();
            count_unread(server, io)?;
        }
        begin_waiting(server, io, &step, true);
        return Poll::Ready(Ok(step));
    }
    unread.extend_from_slice(received);
    // A head that comes in pieces is parsed again for each piece. The limit on its size keeps the
    // cost below that of a packet. An error is found with the first piece that has it.
    let (used, step) = answer_all(server, io, context, &unread)?;
    unread.drain(..used);
    if !unread.is_empty() {
        *io.unread.borrow_mut() = unread;
    }
    count_unread(server, io)?;
    // Bytes left behind a response that had to be waited for are the start of a head, too.
    begin_waiting(server, io, &step, used > 0 || !read);
    Poll::Ready(Ok(step))
}

/// Counts the memory of unread bytes. If the account has no room for it, the connection ends.
fn count_unread<H>(server: &Server<H>, io: &Io) -> io::Result<()> {
    let bytes = io.unread.borrow().capacity();
    let mut counted = io.unread_memory.take();
    match &mut counted {
        _ if bytes <= UNCOUNTED_BYTES => counted = None,
        Some(counted) => counted.resize(bytes as u64).map_err(io::Error::other)?,
        None => {
            let share = server.share(io.client_peer());
            let reserved =
                share.reserve(Resource::Memory, bytes as u64).map_err(io::Error::other)?;
            counted = Some(Box::new(reserved));
        }
    }
    io.unread_memory.set(counted);
    Ok(())
}

/// Sets phase and deadline for the wait that follows. `new_head` is false while the rest of the
/// same head is awaited: its deadline stays.
fn begin_waiting<H>(server: &Server<H>, io: &Io, step: &ConnectionStep<'_>, new_head: bool) {
    if !matches!(step, ConnectionStep::Again) {
        return;
    }
    if io.unread.borrow().is_empty() {
        io.phase.set(ConnectionPhase::Idle);
        io.set_deadline_by_last(server.deadlines.keep_alive);
    } else if new_head {
        io.phase.set(ConnectionPhase::Busy);
        io.set_deadline_by_last(server.deadlines.head);
    }
}

/// Answers the complete requests at the start of `input`. Returns the number of bytes that they
/// took.
fn answer_all<'a, H: Handler>(
    server: &Rc<Server<H>>,
    io: &'a Rc<Io>,
    context: &mut Context<'_>,
    input: &[u8],
) -> io::Result<(usize, ConnectionStep<'a>)> {
    let mut output = server.state.output.borrow_mut();
    let mut work = Work::Nothing;
    let mut unsent = None;
    let mut at = 0;
    while at < input.len() && matches!(work, Work::Nothing) && unsent.is_none() {
        let mut storage = [const { MaybeUninit::uninit() }; MAX_FIELDS];
        match request::parse(&input[at..], &mut storage, &server.limits.head) {
            Ok(Parsed::Partial) => break,
            Ok(Parsed::Complete(head, length)) => {
                at += length;
                work = answer_one(server, io, &mut output, &head);
            }
            Ok(Parsed::RawTarget) => match answer_escaped(server, io, &mut output, &input[at..]) {
                Ok(None) => break,
                Ok(Some((length, done))) => {
                    at += length;
                    work = done;
                }
                Err(reject) => {
                    work = refuse(server, io, &mut output, reject, &input[at..]);
                    at = input.len();
                }
            },
            // HTTP/2 with prior knowledge (RFC 9113 section 3.3). With TLS, the handshake decides.
            Err(_) if !io.is_secure && !io.has_begun.get() && http2::is_preface(input) => {
                return Ok((0, ConnectionStep::Http2));
            }
            Err(reject) => {
                work = refuse(server, io, &mut output, reject, &input[at..]);
                at = input.len();
            }
        }
        if output.len() > GATHERED_BYTES {
            unsent = output.flush(io, context)?;
        }
    }
    if unsent.is_none() && output.len() > 0 {
        unsent = output.flush(io, context)?;
    }
    if matches!(work, Work::Nothing) && unsent.is_none() {
        return Ok((at, ConnectionStep::Again));
    }
    let id = work.request_id();
    // Boxed, so that an idle connection does not carry the size of the work.
    // Made in its place: a copy of so large a future costs more than the request.
    let server = Rc::clone(server);
    Ok((at, ConnectionStep::Settle(Box::pin(InRequest::new(id, settle(server, io, unsent, work))))))
}

/// Answers a request whose target has bytes above 127, as if the client had percent-encoded them.
/// Returns the number of bytes of `input` that it took, or `None` if more are needed.
fn answer_escaped<H: Handler>(
    server: &Server<H>,
    io: &Io,
    output: &mut Output,
    input: &[u8],
) -> Result<Option<(usize, Work)>, Reject> {
    let (escaped, added) = request::escape_target(input);
    let mut storage = [const { MaybeUninit::uninit() }; MAX_FIELDS];
    match request::parse(&escaped, &mut storage, &server.limits.head)? {
        Parsed::Complete(head, length) => {
            Ok(Some((length - added, answer_one(server, io, output, &head))))
        }
        Parsed::Partial => Ok(None),
        Parsed::RawTarget => {
            Err(Reject::Bad("request target has a character that must be percent-encoded"))
        }
    }
}

/// Answers one request into `output` if no waiting is needed.
fn answer_one<H: Handler>(
    server: &Server<H>,
    io: &Io,
    output: &mut Output,
    head: &RequestHead<'_>,
) -> Work {
    proxied::with_origin(server, &io.facts(), head, |head, origin| {
        answer_from(server, io, output, head, origin)
    })
}

/// Answers a request whose origin is known.
fn answer_from<H: Handler>(
    server: &Server<H>,
    io: &Io,
    output: &mut Output,
    head: &RequestHead<'_>,
    origin: Origin<'_>,
) -> Work {
    let mut exchange = Http1Exchange::new(head);
    exchange.persistent &= !server.state.ends(io);
    io.has_begun.set(true);
    io.received_body.set(0);
    if head.is_misdirected(origin.secure) {
        let line = format!("{} {} {}", head.method, head.target, head.version.name());
        return refuse(server, io, output, Reject::Misdirected, line.as_bytes());
    }
    let started = server.observers.begin();
    let scope = RequestScope::enter(origin.notes.id());
    let answer = server.handler.answer(head, origin);
    drop(scope);
    let response = match answer {
        Answer::Later(later) => {
            exchange.takes_trailers = head.takes_trailers();
            let mut request = PendingRequest::kept(server, exchange, head, origin, started);
            return match request.share.reserve_head(head.len_bytes()) {
                Ok(reserved) => {
                    request.head = reserved;
                    Work::Later(later, request)
                }
                Err(_) => Work::Send(Response::no_room(), request),
            };
        }
        Answer::Now(mut response) => {
            response.add_request_id(origin.notes.id());
            response
        }
    };
    let is_long = response.body.length().is_some_and(|length| length > GATHERED_BODY_BYTES);
    if !is_in_memory(&response.body) || is_long || head.body != BodyLength::None {
        let request = PendingRequest::kept(server, exchange, head, origin, started);
        return Work::Send(response, request);
    }
    let body_bytes = write_response(server, output, &response, &mut exchange);
    let now = server.clock().time();
    server.observers.end_at_once(started, head, origin, &response, body_bytes, now);
    if exchange.persistent { Work::Nothing } else { Work::Close }
}

/// Answers bytes that are not an acceptable request. Their first line is in the access log. The
/// connection ends.
fn refuse<H>(
    server: &Server<H>,
    io: &Io,
    output: &mut Output,
    reject: Reject,
    bytes: &[u8],
) -> Work {
    tracing::debug!(peer = %io.peer, %reject, "request refused");
    server.counters.count_reject(reject);
    let record = server.observers.unreadable(io.client_peer(), bytes);
    let response = Response::error(reject.status());
    let body_bytes = write_response(server, output, &response, &mut Http1Exchange::rejected());
    if let Some(record) = record {
        server.observers.end(record, &ResponseRecord::complete(response.summary(), body_bytes));
    }
    Work::Refused
}
