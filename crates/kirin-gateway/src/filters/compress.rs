//! The `compress` filter of a route: codes what an application answers.
//!
//! A whole body is coded at once, a stream chunk by chunk, each flushed so that the client sees it
//! when it comes. The worker is free as early as without: the front takes its bytes off it first.
//! Called by the router around an application's answer.

use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{Method, StatusCode};
use httparse::Header;
use kirin_compress::{AcceptEncoding, Coding, Encoder, MIN_BYTES};
use kirin_http::body::{BodyStream, StreamError};
use kirin_http::entity_tag;
use kirin_http::{
    Answer, Body, ClientShare, RequestHead, Reservation, Resource, Response, Trailers,
};

use crate::filters::coded_fields;
use crate::filters::compress_codings::PlaceCodings;
use crate::filters::compress_threads::CompressThreads;

/// Bytes of a chunk that are coded before the connection gets to write: some 0.5 ms.
const SLICE_BYTES: usize = 64 * 1024;

/// What of a request decides about its response.
pub struct Compress {
    accept: AcceptEncoding,
    codings: PlaceCodings,
    is_head: bool,
    /// The client's `If-None-Match`, when the application gets another.
    if_none_match: Option<Vec<u8>>,
    threads: CompressThreads,
}

impl Compress {
    /// Has `ask` give an answer to `request`, with its body in one of `codings` if the client takes
    /// that.
    pub fn around(
        request: &RequestHead<'_>,
        codings: impl Into<PlaceCodings>,
        threads: &CompressThreads,
        ask: impl FnOnce(&RequestHead<'_>) -> Answer,
    ) -> Answer {
        let codings = codings.into();
        if codings.shared.is_empty() {
            return ask(request);
        }
        let mut compress = Compress {
            accept: AcceptEncoding::parse(joined(request, "accept-encoding").as_deref()),
            codings,
            is_head: request.method == Method::HEAD,
            if_none_match: None,
            threads: threads.clone(),
        };
        // The application knows its tags without what a coding adds to them.
        let if_none_match = joined(request, "if-none-match");
        let if_match = joined(request, "if-match");
        let plain_if_none_match = if_none_match.as_deref().and_then(coded_fields::plain_tags);
        let plain_if_match = if_match.as_deref().and_then(coded_fields::plain_tags);
        let answer = if plain_if_none_match.is_none() && plain_if_match.is_none() {
            ask(request)
        } else {
            let mut fields = request.fields.to_vec();
            replace(&mut fields, "if-none-match", plain_if_none_match.as_deref());
            replace(&mut fields, "if-match", plain_if_match.as_deref());
            compress.if_none_match = if_none_match;
            ask(&RequestHead { fields: &fields, method: request.method.clone(), ..*request })
        };
        match answer {
            // What the front says itself.
            Answer::Now(mut response)
                if response.body.length().is_some_and(|length| length < MIN_BYTES) =>
            {
                compress.restore_tag(&mut response);
                Answer::Now(response)
            }
            Answer::Now(response) => {
                Answer::later(
                    move |body| async move { compress.response(response, body.share()).await },
                )
            }
            Answer::Later(later) => Answer::later(move |body| async move {
                let share = body.share().clone();
                let response = later(body).await;
                compress.response(response, &share).await
            }),
        }
    }

    async fn response(self, mut response: Response, share: &ClientShare) -> Response {
        self.restore_tag(&mut response);
        let codings = self.codings.of(&response.fields);
        if codings.is_empty() || !coded_fields::may_be_coded(response.status, &response.fields) {
            return response;
        }
        let length = response.body.length();
        let is_body = match &response.body {
            Body::Bytes(_) | Body::Segments(_) | Body::Stream(_) => true,
            Body::Withheld(_) => self.is_head,
            // A file is sent by the kernel; what is worth it has been compressed beforehand.
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
            // As long as GET's coded body, which is not known before it is made.
            _ if self.is_head => {
                response.body = Body::Stream(Box::new(Withheld));
                return response;
            }
            Body::Stream(stream) => {
                // A client for which too much is held already does without.
                let encoder = share
                    .reserve(Resource::Memory, Encoder::MEMORY_BYTES)
                    .map_err(std::io::Error::other)
                    .and_then(|reserved| Encoder::new(coding).map(|encoder| (encoder, reserved)));
                match encoder {
                    Ok(encoder) => {
                        response.body = Body::Stream(Box::new(CodedStream::new(stream, encoder)))
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

    /// A 304 for a tag that we have stripped names the variant that the client holds.
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
            // It was a field value before, and has letters more.
            let _ = fields.try_push(b"ETag", &held);
            response.fields = coded_fields::varying(&fields);
        }
    }
}

/// The value of a field, its lines joined.
fn joined(request: &RequestHead<'_>, name: &str) -> Option<Vec<u8>> {
    let mut lines = request.fields.iter().filter(|field| field.name.eq_ignore_ascii_case(name));
    let mut value = lines.next()?.value.to_vec();
    for line in lines {
        value.extend_from_slice(b", ");
        value.extend_from_slice(line.value);
    }
    Some(value)
}

/// Gives the field `name` another value, in its first line.
fn replace<'a>(fields: &mut Vec<Header<'a>>, name: &str, value: Option<&'a [u8]>) {
    let Some(value) = value else { return };
    let mut is_first = true;
    fields.retain_mut(|field| {
        let is_it = field.name.eq_ignore_ascii_case(name);
        if is_it {
            field.value = value;
        }
        !is_it || std::mem::take(&mut is_first)
    });
}

/// No bytes, of a body whose length nobody knows.
pub struct Withheld;

impl BodyStream for Withheld {
    fn poll_chunk(&mut self, _: &mut Context<'_>) -> Poll<Option<Result<Bytes, StreamError>>> {
        Poll::Ready(None)
    }

    fn length(&self) -> Option<u64> {
        None
    }
}

/// A stream coded chunk by chunk.
struct CodedStream {
    source: Box<dyn BodyStream>,
    /// None when the end has been given.
    encoder: Option<Encoder>,
    /// Counts its memory.
    _reserved: Reservation,
    /// The rest of a chunk that is being coded.
    chunk: Bytes,
}

impl CodedStream {
    fn new(source: Box<dyn BodyStream>, (encoder, reserved): (Encoder, Reservation)) -> Self {
        Self { source, encoder: Some(encoder), _reserved: reserved, chunk: Bytes::new() }
    }

    /// Codes a slice of the chunk; flushed at its end, so that nothing that has come waits for what
    /// has not.
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
                    // The client must not take what there is for the whole: no end.
                    Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                    None => self.encoder.take().map_or_else(|| Ok(Vec::new()), Encoder::finish),
                }
            };
            match coded {
                Err(error) => return Poll::Ready(Some(Err(StreamError(error.to_string())))),
                // Small pieces of a slice may stay in the encoder.
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
        // Of the bytes as they were, too.
        trailers.remove(coded_fields::TRAILERS_OF_THE_BYTES);
        Some(trailers)
    }
}

#[cfg(test)]
#[path = "compress_tests.rs"]
mod tests;
