//! One request on a stream of an HTTP/2 connection. For HTTP/1, `exchange` and `response_body` do
//! the same.

use std::collections::VecDeque;
use std::fs::File;
use std::future::{Future, poll_fn};
use std::io;
use std::os::unix::fs::FileExt;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use h2::client::ResponseFuture;
use h2::{RecvStream, SendStream};
use http::Method;
use http::header::{HeaderName, HeaderValue};
use kirin_http::response_head::BadResponse;
use kirin_http::{
    Body, BodyStream, FieldLines, InformationalBudget, RequestBody, Response, StatusCode,
    StreamError, Trailers, UnknownLength, client_gone,
};
use tokio::time::{Instant, Sleep, timeout};

use crate::content::Content;
use crate::failure::ProxyFailure;
use crate::http2_connection::{StreamSender, StreamSlot};
use crate::http2_head;
use crate::local_upstream::LocalUpstream;
use crate::request_head::OutgoingFraming;
use crate::sending::{SendError, Sending};
use crate::server::ProxiedServer;
use crate::timed_attempt::TimedAttempt;
use crate::upstream_request::UpstreamRequest;
use crate::upstream_response::{FILE_FIELDS, is_about_file};

/// Bytes of a body that are passed on at once.
const PIECE_BYTES: usize = 32 * 1024;

/// Sends `request` on a stream of its own and returns the response.
pub(crate) async fn exchange(
    local: &Rc<LocalUpstream>,
    sender: StreamSender,
    server: &Arc<ProxiedServer>,
    attempt: Rc<TimedAttempt>,
    request: &UpstreamRequest,
    content: &mut Content,
) -> Result<Response, ProxyFailure> {
    let StreamSender { mut requests, slot: stream_slot, .. } = sender;
    let config = local.config();
    let framing = content.announced();
    let message = http2_head::request(&request.head, server.scheme(), &server.authority, framing);
    let message = message.ok_or(ProxyFailure::NotForHttp2)?;
    let is_ended = framing == OutgoingFraming::Nothing;
    match timeout(config.timeouts.send, poll_fn(|context| requests.poll_ready(context))).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => return Err(ProxyFailure::NotSent(io::Error::other(error))),
        Err(_) => return Err(ProxyFailure::SendTimeout),
    }
    let (response, stream) = requests
        .send_request(message, is_ended)
        .map_err(|error| ProxyFailure::NotSent(io::Error::other(error)))?;
    // This handle would keep the connection open.
    drop(requests);
    let limit = config.timeouts.send;
    let sending: Option<Sending> = match content {
        Content::Nothing | Content::Spent => None,
        Content::Memory { bytes, trailers, .. } => {
            Some(Box::pin(send_memory(stream, bytes.clone(), trailers.clone(), limit)))
        }
        Content::File { file, length, trailers, .. } => {
            Some(Box::pin(send_file(stream, Rc::clone(file), *length, trailers.clone(), limit)))
        }
        Content::Streamed { .. } => match std::mem::replace(content, Content::Spent) {
            Content::Streamed { first, body } => {
                Some(Box::pin(send_streamed(stream, first, body, limit)))
            }
            _ => None,
        },
    };
    let mut waiting = SentRequest {
        response,
        sending,
        informing: VecDeque::new(),
        progress: ProgressTimeout::new(config.timeouts.first_byte),
    };
    let mut informational = InformationalBudget::default();
    let head = loop {
        match waiting.next(request).await {
            Http2Event::Head(head) => break head.map_err(|error| stream_failure(&error))?,
            Http2Event::Informational(head) => {
                let line = |(name, value): (&HeaderName, &HeaderValue)| {
                    name.as_str().len() + value.len() + 4
                };
                if !informational.take(head.headers().iter().map(line).sum()) {
                    return Err(BadResponse::TooManyInformational.into());
                }
                if let Some(client) = &request.informational
                    && head.status() != StatusCode::CONTINUE
                    && let Ok(mut fields) = http2_head::fields(head.headers(), None)
                {
                    FILE_FIELDS.iter().for_each(|name| fields.remove(name));
                    // This does not wait for the client, so that responses that arrive in the
                    // meantime are counted.
                    let (client, status) = (client.clone(), head.status());
                    waiting.informing.push_back(Box::pin(async move {
                        // If the client has disconnected, sending the response will fail.
                        let _ = client.send(status, &fields).await;
                    }));
                }
            }
            Http2Event::Sent(Ok(())) | Http2Event::Informed => {}
            Http2Event::Sent(Err(SendError::Client(error))) => return Err(error.into()),
            Http2Event::Sent(Err(SendError::Server(error)))
                if error.kind() == io::ErrorKind::TimedOut =>
            {
                return Err(ProxyFailure::SendTimeout);
            }
            // The server may have sent a response. Otherwise, reading it fails.
            Http2Event::Sent(Err(SendError::Server(_))) => {}
            Http2Event::Overdue => return Err(ProxyFailure::FirstByteTimeout),
            Http2Event::ClientGone => return Err(ProxyFailure::ClientGone),
        }
    };
    attempt.answered(std::time::Instant::now());
    for informing in waiting.informing {
        informing.await;
    }
    let (parts, received) = head.into_parts();
    let mut fields = http2_head::fields(&parts.headers, config.via.as_deref())?;
    if config.named_files.is_empty()
        && parts.headers.keys().any(|name| is_about_file(name.as_str()))
    {
        return Err(ProxyFailure::NamedFile);
    }
    let length = http2_head::length(&parts.headers);
    let (status, is_head) = (parts.status, request.head.method == Method::HEAD);
    if status.is_informational() {
        return Err(BadResponse::UnaskedSwitch.into());
    }
    let bodiless = is_head || Response::is_bodiless_status(status);
    if bodiless || received.is_end_stream() {
        let body = match (is_head, length) {
            (true, Some(length)) => Body::Withheld(length),
            _ if bodiless => Body::Stream(Box::new(UnknownLength)),
            _ => Body::Empty,
        };
        return Ok(respond(status, fields, body));
    }
    if request.head.passes_trailers {
        http2_head::announce_trailers(&parts.headers, &mut fields)?;
    }
    let body = Http2Body {
        received,
        sending: waiting.sending,
        length,
        trailers: None,
        progress: ProgressTimeout::new(config.timeouts.idle),
        local: Rc::clone(local),
        server: Arc::clone(server),
        request: request.head.request_line(),
        attempt,
        _stream_slot: stream_slot,
    };
    Ok(respond(status, fields, Body::Stream(Box::new(body))))
}

fn respond(status: StatusCode, fields: FieldLines, body: Body) -> Response {
    Response { status, fields, body, answered_by: crate::ANSWERED_BY }
}

/// Returns the failure for an error of a stream. The server has not seen a request that it has
/// refused, or that its GOAWAY excludes (RFC 9113 sections 8.7 and 6.8).
fn stream_failure(error: &h2::Error) -> ProxyFailure {
    let unseen = error.is_remote()
        && (error.is_go_away() || error.reason() == Some(h2::Reason::REFUSED_STREAM));
    let error = io::Error::other(error.to_string());
    if unseen { ProxyFailure::NotSent(error) } else { ProxyFailure::Stream(error) }
}

/// A request that is being sent, and whose response is awaited.
struct SentRequest {
    response: ResponseFuture,
    sending: Option<Sending>,
    /// Informational responses on their way to the client, in their order.
    informing: VecDeque<Pin<Box<dyn Future<Output = ()>>>>,
    /// Runs from the end of the request.
    progress: ProgressTimeout,
}

enum Http2Event {
    Head(Result<http::Response<RecvStream>, h2::Error>),
    Informational(http::Response<()>),
    /// The client has all informational responses that have arrived.
    Informed,
    Sent(Result<(), SendError>),
    Overdue,
    ClientGone,
}

impl SentRequest {
    async fn next(&mut self, request: &UpstreamRequest) -> Http2Event {
        let is_sent = self.sending.is_none();
        // A client cannot be watched while something is written to it.
        let may_watch = self.informing.is_empty();
        let client = request.client.as_ref();
        let client = client.filter(|client| may_watch && is_sent || client.is_apart_from_body());
        let mut gone = pin!(client_gone(client));
        poll_fn(|context| {
            if let Some(sending) = &mut self.sending
                && let Poll::Ready(sent) = sending.as_mut().poll(context)
            {
                self.sending = None;
                return Poll::Ready(Http2Event::Sent(sent));
            }
            while let Some(first) = self.informing.front_mut()
                && first.as_mut().poll(context).is_ready()
            {
                self.informing.pop_front();
                if self.informing.is_empty() {
                    return Poll::Ready(Http2Event::Informed);
                }
            }
            if let Poll::Ready(Some(Ok(head))) = self.response.poll_informational(context) {
                return Poll::Ready(Http2Event::Informational(head));
            }
            if let Poll::Ready(head) = Pin::new(&mut self.response).poll(context) {
                return Poll::Ready(Http2Event::Head(head));
            }
            if self.sending.is_none() && self.progress.poll_over(context).is_ready() {
                return Poll::Ready(Http2Event::Overdue);
            }
            gone.as_mut().poll(context).map(|()| Http2Event::ClientGone)
        })
        .await
    }
}

/// A time limit for one wait. It starts with the first poll of the wait.
struct ProgressTimeout {
    limit: Duration,
    sleep: Option<Pin<Box<Sleep>>>,
    is_waiting: bool,
}

impl ProgressTimeout {
    fn new(limit: Duration) -> Self {
        Self { limit, sleep: None, is_waiting: false }
    }

    fn poll_over(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let limit = self.limit;
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep(limit)));
        if !std::mem::replace(&mut self.is_waiting, true) {
            sleep.as_mut().reset(Instant::now() + limit);
        }
        sleep.as_mut().poll(context)
    }

    /// Ends the wait. The next poll starts a new one.
    fn end(&mut self) {
        self.is_waiting = false;
    }
}

/// A body that a server is still sending. Dropping it resets the stream.
struct Http2Body {
    received: RecvStream,
    /// Sends the rest of the request. A server may read it while it responds.
    sending: Option<Sending>,
    length: Option<u64>,
    trailers: Option<Trailers>,
    progress: ProgressTimeout,
    local: Rc<LocalUpstream>,
    server: Arc<ProxiedServer>,
    /// Method and target, for the log.
    request: String,
    /// The request's slot at the server, held until the response is complete.
    attempt: Rc<TimedAttempt>,
    _stream_slot: StreamSlot,
}

impl BodyStream for Http2Body {
    fn poll_chunk(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, StreamError>>> {
        if let Some(sending) = &mut self.sending
            && let Poll::Ready(sent) = sending.as_mut().poll(context)
        {
            self.sending = None;
            if let Err(SendError::Client(error)) = sent {
                return Poll::Ready(Some(Err(self.cut(&error.to_string()))));
            }
        }
        let chunk = match self.poll_next(context) {
            Poll::Pending if self.progress.poll_over(context).is_ready() => {
                Err("nothing came for too long".into())
            }
            Poll::Pending => return Poll::Pending,
            Poll::Ready(chunk) => chunk,
        };
        self.progress.end();
        Poll::Ready(match chunk {
            Ok(chunk) => chunk.map(Ok),
            Err(error) => {
                self.attempt.failed(std::time::Instant::now());
                Some(Err(self.cut(&error)))
            }
        })
    }

    fn length(&self) -> Option<u64> {
        self.length
    }

    fn may_have_trailers(&self) -> bool {
        true
    }

    fn take_trailers(&mut self) -> Option<Trailers> {
        self.trailers.take()
    }
}

impl Http2Body {
    /// Returns the next data. When it is taken, the server may send as many bytes again.
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, String>> {
        loop {
            match ready!(self.received.poll_data(context)) {
                Some(Ok(data)) => {
                    let released = self.received.flow_control().release_capacity(data.len());
                    if let Err(error) = released {
                        return Poll::Ready(Err(error.to_string()));
                    }
                    if !data.is_empty() {
                        return Poll::Ready(Ok(Some(data)));
                    }
                }
                Some(Err(error)) => return Poll::Ready(Err(error.to_string())),
                None => break,
            }
        }
        let fields =
            ready!(self.received.poll_trailers(context)).map_err(|error| error.to_string())?;
        let trailers =
            fields.map(Trailers::from_http2).transpose().map_err(|error| error.to_string())?;
        self.trailers = trailers.filter(|trailers| !trailers.is_empty());
        Poll::Ready(Ok(None))
    }

    /// Logs that the body ended too early.
    fn cut(&mut self, error: &str) -> StreamError {
        self.sending = None;
        let upstream = self.local.config().name.as_str();
        self.attempt.warnings.warn("cut", || {
            tracing::warn!(upstream, server = %self.server, request = self.request, error, "response was cut");
        });
        StreamError(error.to_owned())
    }
}

async fn send_memory(
    mut stream: SendStream<Bytes>,
    bytes: Bytes,
    trailers: Option<Trailers>,
    limit: Duration,
) -> Result<(), SendError> {
    send(&mut stream, bytes, trailers.is_none(), limit).await?;
    trailers.map_or(Ok(()), |trailers| end(&mut stream, Some(trailers)))
}

async fn send_file(
    mut stream: SendStream<Bytes>,
    file: Rc<File>,
    length: u64,
    trailers: Option<Trailers>,
    limit: Duration,
) -> Result<(), SendError> {
    let mut offset = 0;
    while offset < length {
        let mut piece = vec![0; (length - offset).min(PIECE_BYTES as u64) as usize];
        file.read_exact_at(&mut piece, offset).map_err(SendError::Server)?;
        offset += piece.len() as u64;
        send(&mut stream, Bytes::from(piece), offset == length && trailers.is_none(), limit)
            .await?;
    }
    trailers.map_or(Ok(()), |trailers| end(&mut stream, Some(trailers)))
}

async fn send_streamed(
    mut stream: SendStream<Bytes>,
    mut first: Option<Bytes>,
    mut body: Box<RequestBody>,
    limit: Duration,
) -> Result<(), SendError> {
    loop {
        let chunk = match first.take() {
            Some(chunk) => Some(chunk),
            None => body.chunk().await.map_err(SendError::Client)?,
        };
        match chunk {
            Some(chunk) => send(&mut stream, chunk, false, limit).await?,
            None => return end(&mut stream, body.take_trailers()),
        }
    }
}

/// Ends the stream after its data.
fn end(stream: &mut SendStream<Bytes>, trailers: Option<Trailers>) -> Result<(), SendError> {
    let ended = match trailers {
        Some(trailers) => stream.send_trailers(trailers.into_fields()),
        None => stream.send_data(Bytes::new(), true),
    };
    ended.map_err(|error| SendError::Server(io::Error::other(error)))
}

/// Sends `bytes` as the server makes room for them.
async fn send(
    stream: &mut SendStream<Bytes>,
    mut bytes: Bytes,
    last: bool,
    limit: Duration,
) -> Result<(), SendError> {
    let failed = |error: h2::Error| SendError::Server(io::Error::other(error));
    while !bytes.is_empty() {
        stream.reserve_capacity(bytes.len().min(PIECE_BYTES));
        let room = poll_fn(|context| match stream.capacity() {
            0 => stream.poll_capacity(context),
            room => Poll::Ready(Some(Ok(room))),
        });
        let room = match timeout(limit, room).await {
            Ok(Some(room)) => room.map_err(failed)?,
            Ok(None) => return Err(SendError::Server(io::ErrorKind::BrokenPipe.into())),
            Err(_) => return Err(SendError::Server(io::ErrorKind::TimedOut.into())),
        };
        let piece = bytes.split_to(room.min(bytes.len()));
        stream.send_data(piece, last && bytes.is_empty()).map_err(failed)?;
    }
    Ok(())
}
