//! One request on one connection: sends it, and reads the response head and the part of the body
//! that came with it. This is the hot path of the crate.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::Poll;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use kirin_http::response_head::BadResponse;
use kirin_http::{
    Body, BodyDecoder, BodyWithTrailers, ClientWatch, FieldLines, InformationalBudget,
    ReceivedHead, Response, StatusCode, client_gone,
};
use tokio::time::Sleep;

use crate::cgi;
use crate::content::Content;
use crate::failure::{ConnectionEnd, ProxyFailure};
use crate::leased_connection::LeasedConnection;
use crate::local_upstream::LocalUpstream;
use crate::pooled_buffer::PooledBuffer;
use crate::request_head::OutgoingHead;
use crate::response_body::ResponseBody;
use crate::sending::{SendError, SendState, Sending, Writer};
use crate::tunnel::ProxyTunnel;
use crate::upstream_request::UpstreamRequest;
use crate::upstream_response::{UpstreamHead, read_head};

/// How long a client that expects `100 Continue` waits for the server's. Some servers never send
/// one.
const CONTINUE_TIME: Duration = Duration::from_secs(1);

/// Sends `request` by `leased` and returns the response. The connection goes back to its pool when
/// the response has been read completely.
pub(crate) async fn exchange(
    local: &Rc<LocalUpstream>,
    leased: LeasedConnection,
    request: &mut UpstreamRequest,
    content: &mut Content,
) -> Result<Response, ProxyFailure> {
    let timeouts = &local.config().timeouts;
    let framing = content.framing(request.head.trailer.is_some() && request.cgi.is_none());
    request.head.finish(framing, &leased.server.authority);
    let writer = Writer {
        socket: Rc::clone(&leased.connection.socket),
        deadlines: Rc::clone(&local.deadlines),
        limit: timeouts.send,
    };
    let hold = request.head.expects_continue;
    let cgi = request
        .cgi
        .as_mut()
        .map(|cgi| cgi.encode(leased.server.scheme(), content.length()))
        .transpose()?;
    let head = cgi.as_deref().unwrap_or_else(|| request.head.as_http1());
    let begun = writer.begin(head, content, framing, hold).await.map_err(ProxyFailure::NotSent)?;
    let mut exchange =
        Exchange { local, leased, sending: None, held: None, refused: None, continue_time: None };
    match begun {
        SendState::Sent => {}
        SendState::Sending(sending) => exchange.sending = Some(sending),
        SendState::Held(head, body) => {
            exchange.sending = Some(head);
            exchange.held = Some(body);
            exchange.continue_time = Some(Box::pin(tokio::time::sleep(CONTINUE_TIME)));
        }
    }
    let mut buffer = local.buffers.take();
    let head = exchange.receive(&mut buffer, request).await?;
    exchange.leased.attempt.answered(Instant::now());
    match head {
        Head::Final(head) => exchange.respond(head, buffer, &request.head).await,
        Head::Switched(fields) => {
            let LeasedConnection { connection, attempt, .. } = exchange.leased;
            let tunnel = ProxyTunnel { connection, unused: Some(buffer), _attempt: attempt };
            let body = Body::Tunnel(Box::new(tunnel));
            Ok(Response {
                status: StatusCode::SWITCHING_PROTOCOLS,
                fields,
                body,
                answered_by: crate::ANSWERED_BY,
            })
        }
    }
}

/// A request that is being sent, and whose response is awaited.
struct Exchange<'a> {
    local: &'a Rc<LocalUpstream>,
    leased: LeasedConnection,
    /// Sends the rest of the request.
    sending: Option<Sending>,
    /// Sends the body, once the server has said `100 Continue`.
    held: Option<Sending>,
    /// Ends when the body is sent without a `100 Continue`.
    continue_time: Option<Pin<Box<Sleep>>>,
    /// The error that ended the sending of the request.
    refused: Option<io::Error>,
}

/// The last head of a response.
enum Head {
    Final(UpstreamHead),
    Switched(FieldLines),
}

/// An event while a response is awaited.
enum ExchangeEvent {
    Sent(Result<(), SendError>),
    Read(io::Result<usize>),
    /// The server has not said whether it wants the body.
    NoContinue,
    ClientGone,
}

impl Exchange<'_> {
    /// Reads until the final head is complete.
    async fn receive(
        &mut self,
        buffer: &mut PooledBuffer,
        request: &UpstreamRequest,
    ) -> Result<Head, ProxyFailure> {
        let (mut has_begun, mut informational) = (false, InformationalBudget::default());
        loop {
            let socket = &self.leased.connection.socket;
            if self.sending.is_none() && self.held.is_none() && socket.read_deadline.get() == 0 {
                socket
                    .read_deadline
                    .set(self.local.deadlines.after(self.local.config().timeouts.first_byte));
            }
            match self.next(buffer, request.client.as_ref()).await {
                ExchangeEvent::Sent(Ok(())) => {}
                ExchangeEvent::Sent(Err(SendError::Client(error))) => return Err(error.into()),
                ExchangeEvent::Sent(Err(SendError::Server(_)))
                    if self.leased.connection.socket.is_overdue() =>
                {
                    return Err(ProxyFailure::SendTimeout);
                }
                // The server may have sent a response before it closed the connection.
                ExchangeEvent::Sent(Err(SendError::Server(error))) => {
                    (self.refused, self.held) = (Some(error), None)
                }
                ExchangeEvent::NoContinue => self.send_held_body(),
                ExchangeEvent::ClientGone => return Err(ProxyFailure::ClientGone),
                ExchangeEvent::Read(Ok(count @ 1..)) => {
                    has_begun = true;
                    buffer.add(count);
                    while let Some((head, length)) = self.read_head(buffer.unused(), request)? {
                        buffer.consume(length);
                        let may_switch = request.head.upgrades() && !self.has_records();
                        head.check(length, may_switch, &mut informational)?;
                        match head {
                            ReceivedHead::Final(head) => {
                                self.leased.connection.socket.read_deadline.set(0);
                                return Ok(Head::Final(head));
                            }
                            ReceivedHead::Switched { fields } => {
                                self.leased.connection.socket.read_deadline.set(0);
                                return Ok(Head::Switched(fields));
                            }
                            ReceivedHead::Informational { status, fields } => {
                                Box::pin(self.inform(status, &fields, request)).await;
                            }
                        }
                    }
                    if buffer.is_full() {
                        return Err(BadResponse::TooLong.into());
                    }
                }
                ExchangeEvent::Read(end) => {
                    let error = end.err().or_else(|| self.refused.take());
                    return Err(self.ended(error, has_begun));
                }
            }
        }
    }

    fn read_head(
        &self,
        input: &[u8],
        request: &UpstreamRequest,
    ) -> Result<Option<(ReceivedHead<UpstreamHead>, usize)>, ProxyFailure> {
        if request.cgi.is_some() {
            return Ok(cgi::read_head(input, request.is_head(), self.has_records())?);
        }
        Ok(read_head(input, request.is_head(), self.local.config().via.as_deref())?)
    }

    fn has_records(&self) -> bool {
        self.leased.connection.socket.records().is_some()
    }

    /// Continues to send, and waits for bytes from the server.
    async fn next(
        &mut self,
        buffer: &mut PooledBuffer,
        client: Option<&ClientWatch>,
    ) -> ExchangeEvent {
        // The socket of an HTTP/1 client has one reader. So the client can be watched only while
        // its request is not read.
        let is_sent = self.sending.is_none();
        let client = client.filter(|client| is_sent || client.is_apart_from_body());
        let mut gone = pin!(client_gone(client));
        let socket = &self.leased.connection.socket;
        let (sending, continue_time) = (&mut self.sending, &mut self.continue_time);
        poll_fn(|context| {
            if let Some(future) = sending
                && let Poll::Ready(result) = future.as_mut().poll(context)
            {
                *sending = None;
                return Poll::Ready(ExchangeEvent::Sent(result));
            }
            if let Poll::Ready(read) = socket.poll_read(context, buffer.room()) {
                return Poll::Ready(ExchangeEvent::Read(read));
            }
            buffer.release_if_empty();
            if sending.is_none()
                && let Some(time) = continue_time
                && time.as_mut().poll(context).is_ready()
            {
                return Poll::Ready(ExchangeEvent::NoContinue);
            }
            gone.as_mut().poll(context).map(|()| ExchangeEvent::ClientGone)
        })
        .await
    }

    /// Starts to send the body that waited for `100 Continue`.
    fn send_held_body(&mut self) {
        self.continue_time = None;
        if let Some(held) = self.held.take() {
            self.sending = Some(held);
        }
    }

    /// Passes an informational response on. `100 Continue` stays between Kirin and the server: the
    /// client gets its own when its body is read.
    async fn inform(&mut self, status: StatusCode, fields: &FieldLines, request: &UpstreamRequest) {
        if status == StatusCode::CONTINUE {
            self.send_held_body();
        } else if let Some(client) = &request.informational {
            // If the client has disconnected, sending the response will fail.
            let _ = client.send(status, fields).await;
        }
    }

    /// Returns why there is no response.
    fn ended(&self, error: Option<io::Error>, has_begun: bool) -> ProxyFailure {
        match (self.leased.connection.socket.is_overdue(), &self.sending, has_begun) {
            (true, Some(_), _) => ProxyFailure::SendTimeout,
            (true, None, _) => ProxyFailure::FirstByteTimeout,
            (false, _, true) => ProxyFailure::Truncated(ConnectionEnd(error)),
            (false, _, false) => ProxyFailure::Closed(ConnectionEnd(error)),
        }
    }

    /// Returns the response with this head. It is complete if the whole body has arrived. Otherwise
    /// the body is read as the client takes it.
    async fn respond(
        mut self,
        mut head: UpstreamHead,
        mut buffer: PooledBuffer,
        request: &OutgoingHead,
    ) -> Result<Response, ProxyFailure> {
        if head.names_file && self.local.config().named_files.is_empty() {
            return Err(ProxyFailure::NamedFile);
        }
        let (length, mut decoder) = (head.body.length(), head.body.decoder());
        let mut data = BytesMut::new();
        let broken =
            |error: kirin_http::chunked::ChunkedError| ProxyFailure::Body(error.to_string());
        let used = decoder.decode(buffer.unused(), &mut data).map_err(broken)?;
        buffer.consume(used);
        if !decoder.is_done() && self.sending.is_none() {
            // Head and body often come in two packets.
            let socket = &self.leased.connection.socket;
            let more =
                poll_fn(|context| Poll::Ready(socket.poll_read(context, buffer.room()))).await;
            if let Poll::Ready(Ok(count @ 1..)) = more {
                buffer.add(count);
                let used = decoder.decode(buffer.unused(), &mut data).map_err(broken)?;
                buffer.consume(used);
            }
        }
        // A FastCGI body without a length may be complete already, because its end is marked.
        let has_ended = matches!(decoder, BodyDecoder::UntilClose)
            && self.leased.connection.socket.has_ended_response();
        let passes_trailers = request.passes_trailers && matches!(decoder, BodyDecoder::Chunked(_));
        for names in head.trailer.iter().filter(|_| passes_trailers) {
            // The value was valid in the response, so this does not fail.
            let _ = head.fields.try_push(b"Trailer", names);
        }
        let (status, fields) = (head.status, head.fields);
        let is_whole = self.sending.is_none() && self.held.is_none() && self.refused.is_none();
        if decoder.is_done() || has_ended {
            if !buffer.is_empty() && !self.leased.server.scheme().is_cgi() {
                self.leased.log_excess(self.local, buffer.unused().len());
            } else if is_whole && !head.close {
                self.leased.release(self.local, head.keep_alive);
            }
            let body = head.body.withheld().unwrap_or_else(|| {
                let trailers = decoder.take_trailers_without(&head.no_trailers);
                let trailers = trailers.filter(|_| passes_trailers);
                match trailers {
                    None => Body::Bytes(data.freeze()),
                    Some(trailers) => {
                        Body::Stream(Box::new(BodyWithTrailers::new(data.freeze(), trailers)))
                    }
                }
            });
            return Ok(Response { status, fields, body, answered_by: crate::ANSWERED_BY });
        }
        let body = ResponseBody {
            local: Rc::clone(self.local),
            leased: Some(self.leased),
            request: request.request_line(),
            decoder,
            data,
            buffer,
            sending: self.sending.take(),
            length,
            no_trailers: head.no_trailers,
            keep_alive: head.keep_alive,
            may_be_kept: !head.close && self.refused.is_none() && self.held.is_none(),
        };
        Ok(Response {
            status,
            fields,
            body: Body::Stream(Box::new(body)),
            answered_by: crate::ANSWERED_BY,
        })
    }
}
