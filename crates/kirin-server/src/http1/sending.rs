//! Sends the responses that are not on the hot path: large files, streams, and the rest for a slow
//! reader.

use std::future::poll_fn;
use std::io;
use std::task::Poll;

use bytes::Bytes;
use kirin_client_bytes::Resource;
use kirin_http::body::{Body, BodyStream, FileRange};
use kirin_http::chunked::{LAST_CHUNK, write_chunk_head, write_end};
use kirin_http::pace::Pace;
use kirin_http::response::Response;

use crate::connection::io::Io;
use crate::file_pieces::FilePieces;
use crate::http1::output::Unsent;
use crate::http1::response_writer::{BodyFraming, Http1Exchange, write_head};
use crate::http1::splicing::{self, Pipes};
use crate::http1::tunnel;

/// The most bytes that one sendfile call moves before other connections get their turn. When a
/// thousand clients ask for a large file at once and do not read it, their sockets are filled in
/// such steps. Steps of 1 MB made all clients wait for seconds.
const SENDFILE_BYTES: u64 = 128 * 1024;

/// Bytes of a file that are read at once if they must be encrypted. Each slow reader takes this
/// much memory.
const PIECE_BYTES: usize = 32 * 1024;

/// Seconds for which the rest of a refused request is read and dropped. Closing the socket earlier
/// would reset the connection before the client has read the response (RFC 9112 section 9.6). Many
/// clients read only after they have sent everything. Over TLS, a reset destroys a response that
/// has arrived already.
pub(crate) const LINGER_SECONDS: u64 = 30;

/// Seconds for which the client may be silent during that time.
pub(crate) const LINGER_SILENCE_SECONDS: u64 = 5;

/// The most bytes that are dropped during that time.
pub(crate) const LINGER_BYTES: usize = 256 * 1024 * 1024;

/// The same if the bytes are not a body.
const SHORT_LINGER_BYTES: usize = 4 * 1024 * 1024;

/// Sends a response. Returns the number of body bytes sent. After an error the connection cannot be
/// kept.
pub(crate) async fn send(
    io: &Io,
    pipes: &Pipes,
    response: Response,
    exchange: &mut Http1Exchange,
) -> io::Result<u64> {
    if let Body::Tunnel(far) = response.body {
        exchange.persistent = false;
        return tunnel::run(io, &response.fields, far).await;
    }
    let mut head = Vec::with_capacity(response.fields.len_bytes() + 160);
    io.clock.now();
    let framing = write_head(&response, exchange, &io.clock, &mut head);
    exchange.head_bytes = head.len();
    let length = response.body.length().unwrap_or(0);
    let head = Bytes::from(head);
    match (framing, response.body) {
        (BodyFraming::Nothing, _) | (_, Body::Empty | Body::Withheld(_) | Body::Tunnel(_)) => {
            flush(io, &mut Unsent::one(head)).await?;
            Ok(0)
        }
        (_, Body::Bytes(bytes)) => {
            let mut unsent = Unsent::one(head);
            unsent.push(bytes);
            flush(io, &mut unsent).await?;
            Ok(length)
        }
        (_, Body::Segments(segments)) => {
            let mut unsent = Unsent::one(head);
            segments.into_iter().for_each(|segment| unsent.push(segment));
            flush(io, &mut unsent).await?;
            Ok(length)
        }
        (_, Body::File(range)) => send_file(io, head, range).await,
        (framing, Body::Stream(stream)) => {
            send_stream(io, pipes, head, stream, framing, exchange.takes_trailers).await
        }
    }
}

/// Writes all of `unsent`. The client must take some bytes from time to time.
pub(crate) async fn flush(io: &Io, unsent: &mut Unsent) -> io::Result<()> {
    flush_at(io, &mut Pace::new(io.deadlines().writing), unsent).await
}

/// Writes a part of a response; `pace` is that of the complete response. The bytes that the client
/// does not take at once are counted for it.
pub(crate) async fn flush_at(io: &Io, pace: &mut Pace, unsent: &mut Unsent) -> io::Result<()> {
    let mut reserved = None;
    io.begin_wait(pace);
    let result = poll_fn(|context| {
        let before = unsent.len();
        let result = unsent.poll_flush(io, context);
        io.progress(pace, before - unsent.len());
        if result.is_pending() && reserved.is_none() {
            let share = io.share.borrow();
            let held = unsent.owned_len() as u64;
            reserved = Some(share.reserve(Resource::Memory, held).map_err(io::Error::other)?);
        }
        result
    })
    .await;
    io.end_wait(pace);
    result
}

async fn send_file(io: &Io, head: Bytes, range: FileRange) -> io::Result<u64> {
    if io.is_encrypted() {
        return send_file_in_pieces(io, head, range).await;
    }
    let mut head = &head[..];
    let mut pace = Pace::new(io.deadlines().writing);
    io.begin_wait(&mut pace);
    while !head.is_empty() {
        let sent = poll_fn(|context| io.poll_send_more(context, head)).await?;
        io.progress(&mut pace, sent);
        head = &head[sent..];
    }
    let (mut offset, end) = (range.offset, range.offset + range.length);
    while offset < end {
        let count = (end - offset).min(SENDFILE_BYTES) as usize;
        let sent =
            poll_fn(|context| io.poll_sendfile(context, &range.file, &mut offset, count)).await?;
        if sent == 0 {
            // The file became shorter while it was sent. Cutting the connection is better than
            // leaving the client waiting.
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        io.progress(&mut pace, sent);
        if offset < end {
            tokio::task::yield_now().await;
        }
    }
    io.clear_deadline();
    Ok(range.length)
}

/// Sends a file that must be encrypted, and so cannot be sent by the kernel.
async fn send_file_in_pieces(io: &Io, head: Bytes, range: FileRange) -> io::Result<u64> {
    let mut unsent = Unsent::one(head);
    let mut pieces = FilePieces::new(range.clone());
    while let Some(piece) = pieces.next(PIECE_BYTES)? {
        unsent.push(piece);
        flush(io, &mut unsent).await?;
        tokio::task::yield_now().await;
    }
    flush(io, &mut unsent).await?;
    Ok(range.length)
}

async fn send_stream(
    io: &Io,
    pipes: &Pipes,
    head: Bytes,
    mut stream: Box<dyn BodyStream>,
    framing: BodyFraming,
    takes_trailers: bool,
) -> io::Result<u64> {
    let expected = stream.length();
    let mut total = 0;
    let mut pace = Pace::new(io.deadlines().writing);
    // The first bytes share the write of the head if they are there already.
    let mut unsent = Unsent::one(head);
    let mut waiting = poll_fn(|context| match stream.poll_chunk(context) {
        Poll::Ready(chunk) => Poll::Ready(Some(chunk)),
        Poll::Pending => Poll::Ready(None),
    })
    .await;
    if waiting.is_none() {
        flush_at(io, &mut pace, &mut unsent).await?;
    }
    let splices = framing == BodyFraming::Plain && !io.is_encrypted();
    loop {
        if splices && waiting.is_none() {
            let moved = splicing::pass_on(io, pipes, &mut pace, &mut *stream).await?;
            if let Some(moved) = moved {
                total += moved;
                continue;
            }
        }
        let chunk = match waiting.take() {
            Some(chunk) => chunk,
            None => poll_fn(|context| stream.poll_chunk(context)).await,
        };
        let chunk = match chunk {
            None => break,
            Some(Ok(chunk)) => chunk,
            Some(Err(error)) => {
                // The client gets the bytes that are there. This includes the head if the first
                // bytes were to share its write.
                flush_at(io, &mut pace, &mut unsent).await?;
                return Err(io::Error::other(error));
            }
        };
        total += chunk.len() as u64;
        if expected.is_some_and(|expected| total > expected) {
            return Err(io::Error::other("response body is longer than announced"));
        }
        if framing == BodyFraming::Chunked {
            let mut size_line = Vec::with_capacity(18);
            write_chunk_head(chunk.len(), &mut size_line);
            unsent.push(Bytes::from(size_line));
            unsent.push(chunk);
            unsent.push(Bytes::from_static(b"\r\n"));
        } else {
            unsent.push(chunk);
        }
        flush_at(io, &mut pace, &mut unsent).await?;
    }
    if expected.is_some_and(|expected| total < expected) {
        flush_at(io, &mut pace, &mut unsent).await?;
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    if framing == BodyFraming::Chunked {
        unsent.push(match stream.take_trailers().filter(|_| takes_trailers) {
            None => Bytes::from_static(LAST_CHUNK),
            Some(trailers) => {
                let mut end = Vec::new();
                write_end(&trailers, &mut end);
                Bytes::from(end)
            }
        });
    }
    flush_at(io, &mut pace, &mut unsent).await?;
    Ok(total)
}

/// Ends our side and drops what the client still sends, before the socket is closed. This is for
/// clients that may still be sending a body.
pub(crate) async fn linger(io: &Io) {
    linger_for(io, LINGER_SECONDS, LINGER_BYTES).await;
}

/// Does the same for a shorter time, for a client that sent no acceptable request, and perhaps
/// floods the server.
pub(crate) async fn linger_shortly(io: &Io) {
    linger_for(io, LINGER_SILENCE_SECONDS, SHORT_LINGER_BYTES).await;
}

async fn linger_for(io: &Io, seconds: u64, bytes: usize) {
    io.shutdown_write();
    let until = io.clock.now() + seconds;
    let mut dropped = 0;
    let mut buffer = vec![0; 16 * 1024];
    while dropped < bytes {
        io.deadline.set(until.min(io.clock.now() + LINGER_SILENCE_SECONDS));
        match poll_fn(|context| io.poll_drop(context, &mut buffer)).await {
            Ok(0) | Err(_) => return,
            Ok(count) => dropped += count,
        }
    }
}
