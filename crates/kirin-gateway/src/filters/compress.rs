//! The `compress` filter of a route: compresses the responses of code.
//!
//! A complete body is coded at once. A stream is coded chunk by chunk, and each chunk is flushed,
//! so that the client sees it when it arrives. The worker is free as early as without compression:
//! the front reads its response first.

use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{Method, StatusCode};
use kirin_client_bytes::{ClientShare, Reservation, Resource};
use kirin_compress::{AcceptEncoding, Coding, Encoder, MIN_BYTES};
use kirin_http::body::{BodyStream, StreamError};
use kirin_http::entity_tag;
use kirin_http::{Answer, Body, RequestHead, Response, Trailers};

use crate::filters::coded_fields;
use crate::filters::compress_codings::PlaceCodings;
use crate::filters::compress_threads::CompressThreads;
use crate::request::context::Request;
use crate::request::field_changes::FieldChange;

/// How many bytes of a chunk are coded before the connection may write: about 0.5 ms.
const SLICE_BYTES: usize = 64 * 1024;

/// The parts of a request that decide how its response is compressed.
struct Compression {
    accept: AcceptEncoding,
    codings: PlaceCodings,
    is_head: bool,
    /// The client's `If-None-Match`, if the application gets another.
    if_none_match: Option<Vec<u8>>,
    threads: CompressThreads,
}

/// Lets `ask` answer the request, and compresses the body in one of `codings` if the client accepts
/// that.
pub fn around(
    request: &Request<'_>,
    codings: impl Into<PlaceCodings>,
    threads: &CompressThreads,
    ask: impl FnOnce(&Request<'_>) -> Answer,
) -> Answer {
    let codings = codings.into();
    if codings.shared.is_empty() {
        return ask(request);
    }
    let head = request.head;
    let mut compression = Compression {
        accept: AcceptEncoding::parse(joined(head, "accept-encoding").as_deref()),
        codings,
        is_head: head.method == Method::HEAD,
        if_none_match: None,
        threads: threads.clone(),
    };
    // The application knows its tags without the suffix of a coding.
    let if_none_match = joined(head, "if-none-match");
    let plain = |list: &Option<Vec<u8>>| list.as_deref().and_then(coded_fields::plain_tags);
    let mut changes = Vec::new();
    for (name, list) in
        [("if-none-match", plain(&if_none_match)), ("if-match", plain(&joined(head, "if-match")))]
    {
        changes.extend(list.map(|list| FieldChange::Replace(name, list)));
    }
    let answer = if changes.is_empty() {
        ask(request)
    } else {
        compression.if_none_match = if_none_match;
        request.with_changes(&changes, ask)
    };
    match answer {
        // Short responses of Kirin itself.
        Answer::Now(mut response)
            if response.body.length().is_some_and(|length| length < MIN_BYTES) =>
        {
            compression.restore_tag(&mut response);
            Answer::Now(response)
        }
        Answer::Now(response) => {
            Answer::later(
                move |body| async move { compression.response(response, body.share()).await },
            )
        }
        Answer::Later(later) => Answer::later(move |body| async move {
            let share = body.share().clone();
            let response = later(body).await;
            compression.response(response, &share).await
        }),
    }
}

impl Compression {
    async fn response(self, mut response: Response, share: &ClientShare) -> Response {
        self.restore_tag(&mut response);
        let codings = self.codings.for_response(&response.fields);
        if codings.is_empty() || !coded_fields::may_be_coded(response.status, &response.fields) {
            return response;
        }
        let length = response.body.length();
        let is_body = match &response.body {
            Body::Bytes(_) | Body::Segments(_) | Body::Stream(_) => true,
            Body::Withheld(_) => self.is_head,
            // The kernel sends a file. Files that are worth it have been compressed before.
            Body::Empty | Body::File(_) | Body::Tunnel(_) => false,
        };
        if !is_body || length.is_some_and(|length| length < MIN_BYTES) {
            return response;
        }
        let uncoded = coded_fields::varying(&response.fields);
        let Some(coding) = self.accept.choose(&Coding::BY_SPEED, |coding| codings.has(coding))
        else {
            response.fields = uncoded;
            return response;
        };
        response.fields = coded_fields::coded(&response.fields, coding);
        let body = std::mem::replace(&mut response.body, Body::Empty);
        let whole = match body {
            // It is as long as the coded body of GET, which is not known before that is made.
            _ if self.is_head => {
                response.body = Body::Stream(Box::new(Withheld));
                return response;
            }
            Body::Stream(stream) => {
                // A client for which too much memory is held already gets it uncoded.
                let encoder = share
                    .reserve(Resource::Memory, Encoder::MEMORY_BYTES)
                    .map_err(std::io::Error::other)
                    .and_then(|reserved| Encoder::new(coding).map(|encoder| (encoder, reserved)));
                match encoder {
                    Ok((encoder, reserved)) => {
                        let coded = CodedStream::new(stream, encoder, reserved);
                        response.body = Body::Stream(Box::new(coded));
                    }
                    Err(error) => {
                        tracing::debug!(%error, "a response is not compressed");
                        (response.fields, response.body) = (uncoded, Body::Stream(stream));
                    }
                }
                return response;
            }
            Body::Bytes(bytes) => bytes,
            Body::Segments(segments) => Bytes::from(segments.concat()),
            other => {
                (response.fields, response.body) = (uncoded, other);
                return response;
            }
        };
        match self.threads.encode_once(coding, whole).await {
            Ok(encoded) => response.body = Body::from(encoded),
            Err(whole) => (response.fields, response.body) = (uncoded, Body::Bytes(whole)),
        }
        response
    }

    /// Restores the tag of the variant that the client holds in a 304 to a tag that was stripped.
    fn restore_tag(&self, response: &mut Response) {
        if response.status != StatusCode::NOT_MODIFIED {
            return;
        }
        let (Some(list), Some(tag)) = (&self.if_none_match, response.fields.get("etag")) else {
            return;
        };
        let quoted = |tag: &[u8]| tag.strip_prefix(b"W/").unwrap_or(tag).to_vec();
        if entity_tag::weakly_in(&quoted(tag), list) {
            return;
        }
        let held = Coding::ALL
            .into_iter()
            .map(|coding| coded_fields::coded_tag(tag, coding))
            .find(|tag| entity_tag::weakly_in(&quoted(tag), list));
        if let Some(held) = held {
            let mut fields = response.fields.without("etag");
            // It was a field value before, and is longer by letters only.
            let _ = fields.try_push(b"ETag", &held);
            response.fields = coded_fields::varying(&fields);
        }
    }
}

/// Returns the value of a field, its lines joined.
fn joined(request: &RequestHead<'_>, name: &str) -> Option<Vec<u8>> {
    let mut lines = request.lines(name);
    let mut value = lines.next()?.to_vec();
    for line in lines {
        value.extend_from_slice(b", ");
        value.extend_from_slice(line);
    }
    Some(value)
}

/// A body without bytes whose length is not known.
pub struct Withheld;

impl BodyStream for Withheld {
    fn poll_chunk(&mut self, _: &mut Context<'_>) -> Poll<Option<Result<Bytes, StreamError>>> {
        Poll::Ready(None)
    }

    fn length(&self) -> Option<u64> {
        None
    }
}

/// A stream that is coded chunk by chunk.
struct CodedStream {
    source: Box<dyn BodyStream>,
    /// None after the end.
    encoder: Option<Encoder>,
    /// The memory of the encoder, counted for the client.
    _reserved: Reservation,
    /// The rest of a chunk that is being coded.
    chunk: Bytes,
}

impl CodedStream {
    fn new(source: Box<dyn BodyStream>, encoder: Encoder, reserved: Reservation) -> Self {
        Self { source, encoder: Some(encoder), _reserved: reserved, chunk: Bytes::new() }
    }

    /// Codes a slice of the chunk. The end of a chunk is flushed, so that its bytes do not wait for
    /// the next chunk.
    fn code_slice(&mut self) -> std::io::Result<Vec<u8>> {
        let Some(encoder) = &mut self.encoder else { return Ok(Vec::new()) };
        let slice = self.chunk.split_to(self.chunk.len().min(SLICE_BYTES));
        encoder.write(&slice)?;
        if self.chunk.is_empty() {
            encoder.flush()?;
        }
        Ok(encoder.take())
    }
}

impl BodyStream for CodedStream {
    fn poll_chunk(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, StreamError>>> {
        loop {
            let coded = if !self.chunk.is_empty() {
                self.code_slice()
            } else if self.encoder.is_none() {
                return Poll::Ready(None);
            } else {
                match ready!(self.source.poll_chunk(context)) {
                    Some(Ok(chunk)) => {
                        self.chunk = chunk;
                        continue;
                    }
                    // There is no end: the client must not take the bytes so far for the complete
                    // body.
                    Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                    None => self.encoder.take().map_or_else(|| Ok(Vec::new()), Encoder::finish),
                }
            };
            match coded {
                Err(error) => return Poll::Ready(Some(Err(StreamError(error.to_string())))),
                // Small pieces may stay in the encoder.
                Ok(coded) if coded.is_empty() => {}
                Ok(coded) => return Poll::Ready(Some(Ok(Bytes::from(coded)))),
            }
        }
    }

    fn length(&self) -> Option<u64> {
        None
    }

    fn may_have_trailers(&self) -> bool {
        self.source.may_have_trailers()
    }

    fn take_trailers(&mut self) -> Option<Trailers> {
        let mut trailers = self.source.take_trailers()?;
        // These are about the uncoded bytes too.
        trailers.remove(coded_fields::TRAILERS_OF_THE_BYTES);
        Some(trailers)
    }
}

#[cfg(test)]
#[path = "compress_tests.rs"]
mod tests;
