//! Sending a request.
//!
//! What the socket takes at once is sent at once. The rest becomes a future that runs while the
//! response is read, because a response may arrive before the request has been sent (RFC 9112
//! section 9.5).

use std::fs::File;
use std::future::{Future, poll_fn};
use std::io::{self, IoSlice};
use std::os::unix::fs::FileExt;
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use kirin_http::chunked::{LAST_CHUNK, write_chunk_head, write_end};
use kirin_http::{BodyError, RequestBody, Trailers};

use crate::cgi::{MAX_RECORD_BYTES, in_records, stdin_header};
use crate::content::{Content, in_chunks};
use crate::deadlines::SocketDeadlines;
use crate::request_head::OutgoingFraming;
use crate::socket::Socket;

/// Bytes of a spool file that are read at once.
const PIECE_BYTES: u64 = 64 * 1024;

/// Sends the rest of a request.
pub(crate) type Sending = Pin<Box<dyn Future<Output = Result<(), SendError>>>>;

/// The reason why a request was not sent completely.
#[derive(Debug)]
pub(crate) enum SendError {
    /// The client has not sent the complete request.
    Client(BodyError),
    /// The server does not take the rest of the request. It may have sent a response nevertheless.
    Server(io::Error),
}

/// The progress of sending a request.
pub(crate) enum SendState {
    /// The request has been sent.
    Sent,
    /// The future sends the rest.
    Sending(Sending),
    /// The first future sends the head. The second sends the body, when the server asks for it.
    Held(Sending, Sending),
}

/// A socket to write to, and the limit for one wait.
#[derive(Clone)]
pub(crate) struct Writer {
    pub(crate) socket: Rc<Socket>,
    pub(crate) deadlines: Rc<SocketDeadlines>,
    pub(crate) limit: Duration,
}

/// The bytes that are written between the pieces of a body.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PieceFraming {
    Nothing,
    Chunks,
    Records,
}

impl Writer {
    /// Starts to send `head` and `content`. The head announces the content with `framing`. An error
    /// means that nothing has been sent.
    pub(crate) async fn begin(
        self,
        head: &[u8],
        content: &mut Content,
        framing: OutgoingFraming,
        hold: bool,
    ) -> io::Result<SendState> {
        let memory = match content {
            Content::Nothing | Content::Spent => Bytes::new(),
            Content::Memory { bytes, trailers: Some(trailers), .. } => in_chunks(bytes, trailers),
            Content::Memory { bytes, trailers: None, .. } => bytes.clone(),
            Content::File { file, length, trailers, .. } => {
                let (head, file, length) = (Bytes::copy_from_slice(head), Rc::clone(file), *length);
                return Ok(SendState::Sending(Box::pin(self.send_file(
                    head,
                    file,
                    length,
                    trailers.clone(),
                ))));
            }
            Content::Streamed { .. } => {
                let framing = match framing {
                    _ if self.socket.records().is_some() => PieceFraming::Records,
                    OutgoingFraming::Chunked => PieceFraming::Chunks,
                    _ => PieceFraming::Nothing,
                };
                let head = Bytes::copy_from_slice(head);
                let Content::Streamed { first, body } = std::mem::replace(content, Content::Spent)
                else {
                    return Ok(SendState::Sent);
                };
                if hold {
                    let body = self.clone().send_stream(Bytes::new(), None, body, framing);
                    return Ok(SendState::Held(
                        Box::pin(self.send_rest([head, Bytes::new()])),
                        Box::pin(body),
                    ));
                }
                return Ok(SendState::Sending(Box::pin(
                    self.send_stream(head, first, body, framing),
                )));
            }
        };
        let records = self.socket.records().map(|_| in_records(head, &memory));
        let (head, memory) = match &records {
            Some(records) => (&records[..], Bytes::new()),
            None => (head, memory),
        };
        let taken = poll_fn(|context| {
            let slices = [IoSlice::new(head), IoSlice::new(&memory)];
            let slices = if memory.is_empty() { &slices[..1] } else { &slices[..] };
            Poll::Ready(match self.socket.poll_write(context, slices) {
                Poll::Pending => Ok((0, false)),
                Poll::Ready(Ok(count)) => match self.socket.poll_flush(context) {
                    Poll::Ready(Ok(())) => Ok((count, true)),
                    Poll::Ready(Err(error)) => Err(error),
                    Poll::Pending => Ok((count, false)),
                },
                Poll::Ready(Err(error)) => Err(error),
            })
        });
        let (count, is_flushed) = taken.await?;
        if count == head.len() + memory.len() && is_flushed {
            return Ok(SendState::Sent);
        }
        let rest = Bytes::copy_from_slice(head.get(count..).unwrap_or_default());
        let memory = memory.slice(count.saturating_sub(head.len()).min(memory.len())..);
        Ok(SendState::Sending(Box::pin(self.send_rest([rest, memory]))))
    }

    async fn send_rest(self, [first, second]: [Bytes; 2]) -> Result<(), SendError> {
        self.write_all([first, second, Bytes::new()]).await
    }

    async fn send_file(
        self,
        mut head: Bytes,
        file: Rc<File>,
        length: u64,
        trailers: Option<Trailers>,
    ) -> Result<(), SendError> {
        let framing = match &trailers {
            _ if self.socket.records().is_some() => PieceFraming::Records,
            Some(_) => PieceFraming::Chunks,
            None => PieceFraming::Nothing,
        };
        let mut offset = 0;
        while offset < length {
            let mut piece = vec![0; (length - offset).min(PIECE_BYTES) as usize];
            file.read_exact_at(&mut piece, offset).map_err(SendError::Server)?;
            offset += piece.len() as u64;
            self.write_piece(std::mem::take(&mut head), Bytes::from(piece), framing).await?;
        }
        self.write_end(framing, trailers).await
    }

    /// Sends the body as it comes from the client, at the pace of the slower side.
    async fn send_stream(
        self,
        mut head: Bytes,
        mut first: Option<Bytes>,
        mut body: Box<RequestBody>,
        framing: PieceFraming,
    ) -> Result<(), SendError> {
        loop {
            let chunk = match first.take() {
                Some(chunk) => Some(chunk),
                None => {
                    self.write_all([std::mem::take(&mut head), Bytes::new(), Bytes::new()]).await?;
                    body.chunk().await.map_err(SendError::Client)?
                }
            };
            let Some(chunk) = chunk else { break };
            self.write_piece(std::mem::take(&mut head), chunk, framing).await?;
        }
        self.write_end(framing, body.take_trailers()).await
    }

    /// Writes a piece of a body, after `head` if that has not been sent yet.
    async fn write_piece(
        &self,
        head: Bytes,
        mut piece: Bytes,
        framing: PieceFraming,
    ) -> Result<(), SendError> {
        match framing {
            PieceFraming::Nothing => self.write_all([head, piece, Bytes::new()]).await,
            PieceFraming::Chunks => {
                let mut start = Vec::from(head);
                write_chunk_head(piece.len(), &mut start);
                self.write_all([Bytes::from(start), piece, Bytes::from_static(b"\r\n")]).await
            }
            PieceFraming::Records => {
                let mut start = Vec::from(head);
                while !piece.is_empty() {
                    let part = piece.split_to(piece.len().min(MAX_RECORD_BYTES));
                    start.extend_from_slice(&stdin_header(part.len()));
                    self.write_all([Bytes::from(std::mem::take(&mut start)), part, Bytes::new()])
                        .await?;
                }
                Ok(())
            }
        }
    }

    async fn write_end(
        &self,
        framing: PieceFraming,
        trailers: Option<Trailers>,
    ) -> Result<(), SendError> {
        let end = match (framing, trailers) {
            (PieceFraming::Nothing, _) => return Ok(()),
            (PieceFraming::Chunks, None) => Bytes::from_static(LAST_CHUNK),
            (PieceFraming::Chunks, Some(trailers)) => {
                let mut end = Vec::new();
                write_end(&trailers, &mut end);
                Bytes::from(end)
            }
            (PieceFraming::Records, _) => Bytes::copy_from_slice(&stdin_header(0)),
        };
        self.write_all([end, Bytes::new(), Bytes::new()]).await
    }

    async fn write_all(&self, mut pieces: [Bytes; 3]) -> Result<(), SendError> {
        let written = poll_fn(|context| {
            loop {
                let mut slices = [IoSlice::new(&[]); 3];
                let mut count = 0;
                for piece in pieces.iter().filter(|piece| !piece.is_empty()) {
                    slices[count] = IoSlice::new(piece);
                    count += 1;
                }
                let result = match count {
                    0 => self.socket.poll_flush(context).map_ok(|()| 0),
                    _ => self.socket.poll_write(context, &slices[..count]),
                };
                let Poll::Ready(result) = result else {
                    if self.socket.write_deadline.get() == 0 {
                        self.socket.write_deadline.set(self.deadlines.after(self.limit));
                    }
                    return Poll::Pending;
                };
                self.socket.write_deadline.set(0);
                match result {
                    Ok(_) if count == 0 => return Poll::Ready(Ok(())),
                    Ok(0) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                    Ok(mut taken) => {
                        for piece in &mut pieces {
                            let of_piece = taken.min(piece.len());
                            *piece = piece.slice(of_piece..);
                            taken -= of_piece;
                        }
                    }
                    Err(error) => return Poll::Ready(Err(error)),
                }
            }
        });
        written.await.map_err(SendError::Server)
    }
}
