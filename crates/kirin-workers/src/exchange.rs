//! One request on one worker: sends it and reads the response. This is the hot path of the crate.

use std::future::{Future, poll_fn};
use std::io::{self, IoSlice};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use kirin_cgi::RequestBlock;
use kirin_client_bytes::ClientShare;
use kirin_files::{AppFiles, NotThatFile};
use kirin_http::response_head::BadResponse;
use kirin_http::{
    Body, BodyDecoder, BodyWithTrailers, ClientWatch, FieldLines, Informational,
    InformationalBudget, ReceivedHead, RequestFields, RequestSteps, Response, StatusCode, StepKind,
    StepPeer, Trailers,
};
use kirin_spool::SpooledBody;

use crate::after_response::after_response;
use crate::app::App;
use crate::handed_file::HandedFile;
use crate::pool::Refused;
use crate::read_ahead::ReadAhead;
use crate::response_pump::{PumpedBody, UnreadBody};
use crate::slow_watch;
use crate::tunnel::WorkerTunnel;
use crate::worker::WorkerConnection;
use crate::worker_response::{Afterwards, ProtocolError, WorkerHead, read_head};

/// Responses of up to this size are read completely before the client gets a byte.
const WHOLE_BYTES: u64 = 1024 * 1024;

/// Bytes of a spooled body that are sent with one system call.
const SENDFILE_BYTES: u64 = 256 * 1024;

/// A request without its body, as a worker gets it.
pub(crate) struct WorkerRequest {
    pub(crate) block: RequestBlock,
    pub(crate) is_get: bool,
    pub(crate) is_head: bool,
    /// Whether the client wants to switch to another protocol.
    pub(crate) upgrade: bool,
    /// The client, if it can be watched.
    pub(crate) client: Option<ClientWatch>,
    /// Takes the informational responses for the client.
    pub(crate) informational: Option<Informational>,
    /// Whether the method may be repeated (RFC 9110 section 9.2.2).
    pub(crate) idempotent: bool,
    /// The open files of the event loop.
    pub(crate) files: Rc<AppFiles>,
    /// The steps of the request, for logs and traces.
    pub(crate) steps: Rc<RequestSteps>,
}

/// Why there is no response from a worker.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The worker ended before it had read the complete request. The application has not seen it.
    #[error("worker {pid} was lost before it read the request")]
    NotRead { pid: u32 },
    /// The worker ended before it responded.
    #[error("worker {pid} was lost while it worked on the request")]
    NoResponse { pid: u32 },
    /// The worker ended inside the response.
    #[error("worker {pid} was lost inside its response")]
    Truncated { pid: u32 },
    /// The worker took too long and was killed.
    #[error("worker {pid} took too long and is killed")]
    Overdue { pid: u32 },
    /// The worker took too long for the request, and goes on with others.
    #[error("worker {pid} took too long for it")]
    GivenUp { pid: u32 },
    /// The worker broke the protocol.
    #[error("worker {pid}: {error}")]
    Protocol { pid: u32, error: ProtocolError },
    /// No worker has claimed the request, which was in the ring since `put_at`. It waits for its
    /// turn, or for another generation.
    #[error("the request was taken back before a worker took it")]
    Withdrawn { put_at: Instant },
    /// The request gets no worker.
    #[error("no worker is there in time")]
    Refused(Refused),
    /// Kirin cannot send the file that the worker handed back. The worker can send it itself.
    #[error("worker {pid} handed back {}: {error}", path.display())]
    File { pid: u32, path: PathBuf, error: NotThatFile },
}

impl Failure {
    /// Returns whether another worker may get the request.
    pub(crate) fn may_be_retried(&self, request: &WorkerRequest) -> bool {
        match self {
            Failure::NotRead { .. } | Failure::Withdrawn { .. } => true,
            Failure::NoResponse { .. } | Failure::File { .. } => request.idempotent,
            Failure::Truncated { .. }
            | Failure::Overdue { .. }
            | Failure::GivenUp { .. }
            | Failure::Protocol { .. }
            | Failure::Refused(_) => false,
        }
    }

    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Failure::Overdue { .. } | Failure::GivenUp { .. } => StatusCode::GATEWAY_TIMEOUT,
            _ => StatusCode::BAD_GATEWAY,
        }
    }
}

/// Sends `request` to a worker and returns the response, under the watch for slow requests.
pub(crate) async fn exchange(
    app: &Arc<App>,
    connection: WorkerConnection,
    request: &WorkerRequest,
    body: &SpooledBody,
    share: &ClientShare,
) -> Result<Response, Failure> {
    let worker = Arc::clone(&connection.handle);
    let begun_at = Instant::now();
    let answered = over_connection(app, connection, request, body, share, Begun::NotSent);
    match app.config().slow {
        None => answered.await,
        Some(limit) => {
            let who = || Some((Arc::clone(&worker), begun_at));
            slow_watch::watch(app, request, limit, who, answered).await
        }
    }
}

/// How far a request is whose answer comes over a connection.
#[derive(Clone, Copy)]
pub(crate) enum Begun {
    /// The worker waits for it on the connection.
    NotSent,
    /// The worker has it through the ring.
    Read {
        /// Since when.
        claimed_at: Instant,
    },
}

/// Sends `request` to a worker, if it has not got it through the ring, and returns the response.
///
/// The worker is given back as soon as its response has been read. For a large response, that is
/// after this function has returned.
pub(crate) async fn over_connection(
    app: &Arc<App>,
    mut connection: WorkerConnection,
    request: &WorkerRequest,
    body: &SpooledBody,
    share: &ClientShare,
    begun: Begun,
) -> Result<Response, Failure> {
    let pid = connection.handle.pid;
    let begun_at = match begun {
        Begun::NotSent => Instant::now(),
        Begun::Read { claimed_at } => claimed_at,
    };
    let step = request.steps.begin_at(StepKind::Worker, app.label(), begun_at);
    step.set_peer(StepPeer::Process(pid));
    app.deadlines.begin_at(&connection.handle, begun_at);
    connection.begin_request(&request.block, begun_at);
    let sent = match begun {
        Begun::NotSent => send(&mut connection, request, body).await,
        Begun::Read { .. } => Ok(()),
    };
    let result = match sent {
        Ok(()) => receive(&mut connection, request).await,
        Err(_) => Err(Failure::NotRead { pid }),
    };
    let (mut head, reading) = match result {
        Ok(Received::Response(head, reading)) => (head, reading),
        Ok(Received::Switched(fields)) => {
            connection.handle.end();
            connection.give_up_buffer();
            let body = Body::Tunnel(Box::new(WorkerTunnel { connection, app: Arc::clone(app) }));
            return Ok(Response {
                status: StatusCode::SWITCHING_PROTOCOLS,
                fields,
                body,
                answered_by: crate::ANSWERED_BY,
            });
        }
        Err(_) if connection.handle.is_killed() => {
            return Err(match connection.handle.process.is_concurrent() {
                true => Failure::GivenUp { pid },
                false => Failure::Overdue { pid },
            });
        }
        Err(failure @ Failure::NotRead { .. }) => {
            app.note_unread(&connection.handle.process);
            return Err(failure);
        }
        Err(failure) => return Err(failure),
    };
    if !connection.handle.end() {
        // The request was overdue at the moment in which its response came.
        head.afterwards = match connection.handle.process.is_concurrent() {
            true => Afterwards::EndsConnection,
            false => Afterwards::Leaves,
        };
    }
    let file = head.file.take();
    match (reading, file) {
        // The file replaces the body.
        (reading, Some(file)) => {
            let is_ours = connection.handle.process.is_same_user();
            if !matches!(reading, Reading::Begun(..)) {
                after_response(app, connection, head.afterwards);
            }
            file_response(app, request, head, file, pid, is_ours)
        }
        (Reading::Whole(data), None) => {
            after_response(app, connection, head.afterwards);
            Ok(whole_response(head, data))
        }
        (Reading::WholeWithTrailers(data, trailers), None) => {
            after_response(app, connection, head.afterwards);
            if !pass_trailers(&mut head, request) {
                return Ok(whole_response(head, data));
            }
            let body = BodyWithTrailers::new(data, *trailers);
            Ok(response(head, Body::Stream(Box::new(body))))
        }
        (Reading::Begun(decoder, data), None) => {
            let is_chunked = matches!(decoder, BodyDecoder::Chunked(_));
            let passes_trailers = is_chunked && pass_trailers(&mut head, request);
            let body = UnreadBody {
                decoder,
                length: head.body.length(),
                ahead: ReadAhead::new(data, share),
                excluded_trailers: passes_trailers.then(|| head.excluded_trailers().to_vec()),
            };
            let body = PumpedBody::start(Arc::clone(app), connection, body, head.afterwards, step);
            Ok(response(head, Body::Stream(Box::new(body))))
        }
    }
}

/// Sends head and body. Needs one system call if both are in memory and fit into the socket's
/// buffer.
async fn send(
    connection: &mut WorkerConnection,
    request: &WorkerRequest,
    body: &SpooledBody,
) -> io::Result<()> {
    let head = request.block.as_bytes();
    let memory: &[u8] = match body {
        SpooledBody::Memory { bytes, .. } => bytes,
        SpooledBody::File { .. } => &[],
    };
    // If the file cannot be opened again, its bytes are sent.
    let handed_over = match body {
        SpooledBody::File { .. } if connection.handle.process.takes_descriptors => {
            body.reopen().ok()
        }
        _ => None,
    };
    let mut sent = match &handed_over {
        Some(file) => connection.send_with_descriptor(head, file.as_fd()).await?,
        None => 0,
    };
    while sent < head.len() + memory.len() {
        let slices = [
            IoSlice::new(head.get(sent..).unwrap_or_default()),
            IoSlice::new(&memory[sent.saturating_sub(head.len())..]),
        ];
        // Most requests have no body.
        let slices = if memory.is_empty() { &slices[..1] } else { &slices[..] };
        let count = poll_fn(|context| connection.poll_write_vectored(context, slices)).await?;
        if count == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        sent += count;
    }
    if let (SpooledBody::File { file, length, .. }, None) = (body, handed_over) {
        let mut offset = 0;
        while offset < *length {
            let count = (length - offset).min(SENDFILE_BYTES) as usize;
            if connection.send_file(file, &mut offset, count).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
    Ok(())
}

/// What a worker has sent.
enum Received {
    Response(WorkerHead, Reading),
    /// The worker has switched to another protocol, with these fields of its 101.
    Switched(FieldLines),
}

/// How much of a response body has been read.
enum Reading {
    /// The complete body.
    Whole(Bytes),
    /// The complete body, and what came behind it.
    WholeWithTrailers(Bytes, Box<Trailers>),
    /// A part of the body. The decoder knows what is missing.
    Begun(BodyDecoder, BytesMut),
}

/// Reads the head, and the body if it is small.
async fn receive(
    connection: &mut WorkerConnection,
    request: &WorkerRequest,
) -> Result<Received, Failure> {
    let pid = connection.handle.pid;
    let protocol = |error| Failure::Protocol { pid, error };
    let (mut received, mut informational) = (false, InformationalBudget::default());
    let head = loop {
        if connection.buffer_is_full() {
            return Err(protocol(BadResponse::TooLong.into()));
        }
        match fill(connection, request).await? {
            Ok(1..) => received = true,
            // Linux resets a unix socket if the other end is closed with unread bytes in it
            // (unix_release_sock). An adapter reads the complete request before it calls the
            // application. So the application has not seen this one.
            Err(error) if !received && error.kind() == io::ErrorKind::ConnectionReset => {
                return Err(Failure::NotRead { pid });
            }
            _ if received => return Err(Failure::Truncated { pid }),
            _ => return Err(Failure::NoResponse { pid }),
        }
        match next_head(connection, request, &mut informational).await.map_err(protocol)? {
            Some(Next::Final(head)) => break head,
            Some(Next::Switched(fields)) => return Ok(Received::Switched(fields)),
            None => {}
        }
    };

    if let Some(length @ 1..=WHOLE_BYTES) = head.body.length() {
        let data = read_whole(connection, length as usize).await?;
        head.afterwards.check_left(connection.buffered()).map_err(protocol)?;
        return Ok(Received::Response(head, Reading::Whole(data)));
    }
    let mut decoder = head.body.decoder();
    let mut data = BytesMut::new();
    let used =
        decoder.decode(connection.buffered(), &mut data).map_err(|error| protocol(error.into()))?;
    connection.consume(used);
    head.afterwards.check_left(connection.buffered()).map_err(protocol)?;
    let reading = if decoder.is_done() {
        match decoder.take_trailers_without(head.excluded_trailers()) {
            None => Reading::Whole(data.freeze()),
            Some(trailers) => Reading::WholeWithTrailers(data.freeze(), Box::new(trailers)),
        }
    } else {
        Reading::Begun(decoder, data)
    };
    Ok(Received::Response(head, reading))
}

/// Returns whether the client gets the trailers. Its head then announces those that the worker has
/// announced.
fn pass_trailers(head: &mut WorkerHead, request: &WorkerRequest) -> bool {
    let takes_trailers = request.block.takes_trailers();
    let names = head.trailer_names.iter().flat_map(|names| &names.announced);
    for names in names.filter(|_| takes_trailers) {
        // The value was valid in the response, so this does not fail.
        let _ = head.fields.try_push(b"Trailer", names);
    }
    takes_trailers
}

/// Waits for bytes of the response. A worker with other requests need not work for a client that
/// has disconnected. One without learns it when it sends.
async fn fill(
    connection: &mut WorkerConnection,
    request: &WorkerRequest,
) -> Result<io::Result<usize>, Failure> {
    let client = request.client.as_ref().filter(|_| connection.handle.process.is_concurrent());
    let Some(client) = client else {
        return Ok(poll_fn(|context| connection.poll_fill(context)).await);
    };
    let mut gone = pin!(client.gone());
    poll_fn(|context| match connection.poll_fill(context) {
        Poll::Ready(filled) => Poll::Ready(Ok(filled)),
        Poll::Pending => {
            gone.as_mut().poll(context).map(|()| Err(Failure::Refused(Refused::ClientGone)))
        }
    })
    .await
}

/// A head that ends the exchange of heads.
enum Next {
    Final(WorkerHead),
    Switched(FieldLines),
}

/// Takes the final head out of what has been read, if it is complete. Informational responses
/// before it go on to the client.
async fn next_head(
    connection: &mut WorkerConnection,
    request: &WorkerRequest,
    informational: &mut InformationalBudget,
) -> Result<Option<Next>, ProtocolError> {
    while let Some((head, length)) = read_head(connection.buffered(), request.is_head)? {
        connection.consume(length);
        head.check(length, request.upgrade, informational)?;
        match (head, &request.informational) {
            (ReceivedHead::Final(head), _) => return Ok(Some(Next::Final(head))),
            (ReceivedHead::Switched { fields }, _) => return Ok(Some(Next::Switched(fields))),
            // Kirin has sent its own `100 Continue`.
            (ReceivedHead::Informational { status: StatusCode::CONTINUE, .. }, _)
            | (ReceivedHead::Informational { .. }, None) => {}
            (ReceivedHead::Informational { status, fields }, Some(client)) => {
                // If the client has gone, sending the response will find out.
                let _ = client.send(status, &fields).await;
            }
        }
    }
    Ok(None)
}

/// Reads a body of `length` bytes. Most bodies have come with the head.
async fn read_whole(connection: &mut WorkerConnection, length: usize) -> Result<Bytes, Failure> {
    let pid = connection.handle.pid;
    let buffered = connection.buffered();
    if let Some(data) = buffered.get(..length) {
        let data = Bytes::copy_from_slice(data);
        connection.consume(length);
        return Ok(data);
    }
    let mut data = BytesMut::with_capacity(length);
    data.extend_from_slice(buffered);
    connection.consume(data.len());
    while data.len() < length {
        let missing = length - data.len();
        if !matches!(connection.read_more(&mut data, missing).await, Ok(1..)) {
            return Err(Failure::Truncated { pid });
        }
    }
    Ok(data.freeze())
}

/// Returns the response for a request whose worker has handed back `file`.
pub(crate) fn file_response(
    app: &App,
    request: &WorkerRequest,
    head: WorkerHead,
    file: HandedFile,
    pid: u32,
    is_ours: bool,
) -> Result<Response, Failure> {
    let now = Instant::now();
    let file = match file {
        // A worker of another user could name a file that Kirin may read and that user may not.
        HandedFile::Opened { path, seen } => {
            let found = if is_ours {
                request.files.opened(&path, &seen, now)
            } else {
                Err(NotThatFile::AnotherUser)
            };
            found.map_err(|error| Failure::File { pid, path, error })?
        }
        HandedFile::Named(path) => match app.sendfile_roots().find(&request.files, &path, now) {
            Ok(file) => file,
            Err(error) => {
                tracing::error!(app = app.name(), %error, "X-Sendfile: the file is not sent");
                return Ok(Response::error(error.status()));
            }
        },
    };
    if head.status == StatusCode::OK && (request.is_get || request.is_head) {
        let fields = RequestFields::from_cgi(request.block.variables());
        return Ok(file.respond(head.fields, &fields, request.is_head));
    }
    Ok(file.whole(head.status, head.fields, request.is_head))
}

/// Returns a response that has been read completely.
pub(crate) fn whole_response(head: WorkerHead, data: Bytes) -> Response {
    let body = head.body.withheld().unwrap_or(Body::Bytes(data));
    response(head, body)
}

fn response(head: WorkerHead, body: Body) -> Response {
    Response { status: head.status, fields: head.fields, body, answered_by: crate::ANSWERED_BY }
}
