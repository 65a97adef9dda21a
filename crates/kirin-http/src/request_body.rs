//! The body of a request, read when a place wants it.

use std::future::poll_fn;
use std::rc::Rc;

use bytes::Bytes;
use http::StatusCode;
use http::header::HeaderName;

use crate::chunked::{ChunkedDecoder, ChunkedError, Event};
use crate::client_bytes::{ClientShare, NoRoom, Reservation, Resource};
use crate::client_watch::ClientWatch;
use crate::http2::Http2Source;
use crate::informational::Informational;
use crate::io::Io;
use crate::output::Unsent;
use crate::pace::Pace;
use crate::request::BodyLength;
use crate::trailers::{TooManyTrailers, Trailers};

/// Bytes read at once. Bodies of this size and less come in one piece.
const READ_BYTES: usize = 64 * 1024;

/// Yields a request's body piece by piece, with the framing taken off.
pub struct RequestBody {
    source: Option<Source>,
    length: BodyLength,
    limit_bytes: u64,
    read_bytes: u64,
    informational: Option<Informational>,
    client: Option<ClientWatch>,
    share: ClientShare,
    /// Counts the bytes that were given out last.
    given: Option<Reservation>,
    /// What has come behind the body.
    trailers: Option<Trailers>,
    /// Fields that are not taken for trailers.
    no_trailers: Vec<HeaderName>,
}

enum Source {
    Http1(Http1Source),
    Http2(Http2Source),
    Read(Bytes),
}

struct Http1Source {
    io: Rc<Io>,
    framing: Framing,
    pace: Pace,
    /// `100 Continue` is still owed.
    expects_continue: bool,
}

enum Framing {
    Exact { left: u64 },
    Chunked(ChunkedDecoder),
}

/// Why a body could not be read whole.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    /// It is longer than the limit that the route sets.
    #[error("request body is larger than {0} bytes")]
    TooLarge(u64),
    /// The chunked coding is broken.
    #[error(transparent)]
    Chunked(#[from] ChunkedError),
    /// More follows it than is read.
    #[error(transparent)]
    Trailers(#[from] TooManyTrailers),
    /// The server holds too much for this client, or for all.
    #[error(transparent)]
    NoRoom(#[from] NoRoom),
    /// The client went away or was too slow.
    #[error("client ended the connection inside the request body")]
    Ended,
    /// The socket failed.
    #[error("request body: {0}")]
    Io(#[from] std::io::Error),
}

impl BodyError {
    /// The status to answer with.
    pub fn status(&self) -> StatusCode {
        match self {
            BodyError::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            BodyError::NoRoom(_) => StatusCode::SERVICE_UNAVAILABLE,
            BodyError::Chunked(_)
            | BodyError::Trailers(_)
            | BodyError::Ended
            | BodyError::Io(_) => StatusCode::BAD_REQUEST,
        }
    }
}

impl RequestBody {
    /// The body of a request that has none.
    pub fn empty() -> Self {
        Self {
            source: None,
            length: BodyLength::None,
            limit_bytes: u64::MAX,
            read_bytes: 0,
            informational: None,
            client: None,
            share: ClientShare::default(),
            given: None,
            trailers: None,
            no_trailers: Vec::new(),
        }
    }

    /// This body again, which has been read whole and is `read`: for who is asked after one that
    /// has read it.
    pub fn again(self, read: Bytes) -> Self {
        let source = (!read.is_empty()).then_some(Source::Read(read));
        Self { source, read_bytes: 0, ..self }
    }

    /// A body that is there.
    pub fn of_bytes(body: Bytes) -> Self {
        let length = match body.len() as u64 {
            0 => BodyLength::None,
            length => BodyLength::Exact(length),
        };
        Self { length, ..Self::empty() }.again(body)
    }

    pub(crate) fn http1(io: &Rc<Io>, length: BodyLength, expects_continue: bool) -> Self {
        let framing = match length {
            BodyLength::None => return Self::empty(),
            BodyLength::Exact(left) => Framing::Exact { left },
            BodyLength::Chunked => Framing::Chunked(ChunkedDecoder::new()),
        };
        io.body_finished.set(false);
        let pace = Pace::new(io.deadlines.reading);
        let source = Http1Source { io: Rc::clone(io), framing, pace, expects_continue };
        Self { source: Some(Source::Http1(source)), length, ..Self::empty() }
    }

    /// The data of an HTTP/2 stream.
    pub(crate) fn http2(source: Http2Source, length: BodyLength) -> Self {
        Self { source: Some(Source::Http2(source)), length, ..Self::empty() }
    }

    /// The body of a request whose client understands informational responses.
    pub(crate) fn with_informational(self, informational: Informational) -> Self {
        Self { informational: Some(informational), ..self }
    }

    /// The body of a request whose client can be watched.
    pub(crate) fn with_client(self, client: ClientWatch) -> Self {
        Self { client: Some(client), ..self }
    }

    /// The body of a request whose bytes are counted for a client.
    pub(crate) fn with_share(self, share: ClientShare) -> Self {
        Self { share, ..self }
    }

    /// For whom bytes are counted that are held for this request.
    pub fn share(&self) -> &ClientShare {
        &self.share
    }

    /// Has somebody else count the bytes that were given out last.
    pub fn take_reservation(&mut self) -> Option<Reservation> {
        self.given.take()
    }

    /// Has fields of these names left out of the trailers: those that `Connection` of the head
    /// names (RFC 9110 section 7.6.1).
    pub fn leave_out_of_trailers(&mut self, names: Vec<HeaderName>) {
        self.no_trailers = names;
    }

    /// Whether trailers may still come, or have come: also behind a body of known length, in
    /// HTTP/2.
    pub fn may_have_trailers(&self) -> bool {
        match &self.source {
            Some(Source::Http1(source)) => matches!(source.framing, Framing::Chunked(_)),
            Some(Source::Http2(source)) => !source.has_ended(),
            Some(Source::Read(_)) | None => self.trailers.is_some(),
        }
    }

    /// Whether a first piece of this length is all that comes, as far as is known without waiting.
    pub fn has_ended_with(&self, bytes: u64) -> bool {
        match &self.source {
            Some(Source::Http2(source)) => source.has_ended(),
            _ => self.length == BodyLength::Exact(bytes) && !self.may_have_trailers(),
        }
    }

    /// The trailers that may be passed on, after the end.
    pub fn take_trailers(&mut self) -> Option<Trailers> {
        let mut trailers = self.trailers.take()?;
        trailers.remove(&self.no_trailers);
        trailers.remove_ambiguous();
        Some(trailers).filter(|trailers| !trailers.is_empty())
    }

    /// Who has sent the request, if that can be watched.
    pub fn client(&self) -> Option<ClientWatch> {
        self.client.clone()
    }

    /// The way for informational responses; none to a client that does not understand them.
    pub fn informational(&self) -> Option<Informational> {
        self.informational.clone()
    }

    /// How the body was announced.
    pub fn length(&self) -> BodyLength {
        self.length
    }

    /// Bytes at most; what is longer is [`BodyError::TooLarge`], when announced before a byte of it
    /// is read. Of several limits the smallest counts.
    pub fn limit(&mut self, bytes: u64) {
        self.limit_bytes = self.limit_bytes.min(bytes);
    }

    /// All of the body, if it is no longer than `limit_bytes`. It is counted for the client as long
    /// as this exists.
    pub async fn read_whole(&mut self, limit_bytes: u64) -> Result<Bytes, BodyError> {
        self.limit(limit_bytes);
        let Some(first) = self.chunk().await? else { return Ok(Bytes::new()) };
        let Some(second) = self.chunk().await? else { return Ok(first) };
        let mut reserved = self.share.reserve(Resource::Memory, 0)?;
        let mut whole = [first, second].concat();
        while let Some(chunk) = self.chunk().await? {
            reserved.resize((whole.len() + chunk.len()) as u64)?;
            whole.extend_from_slice(&chunk);
        }
        self.given = Some(reserved);
        Ok(whole.into())
    }

    /// The next bytes, never empty; `None` at the end. They are counted for the client until
    /// others are given out.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, BodyError> {
        if let BodyLength::Exact(length) = self.length
            && length > self.limit_bytes
        {
            return Err(BodyError::TooLarge(self.limit_bytes));
        }
        let Some(source) = &mut self.source else { return Ok(None) };
        let next = match source {
            Source::Http1(source) => source.next().await?,
            Source::Http2(source) => source.next().await?,
            Source::Read(read) => Some(std::mem::take(read)).filter(|read| !read.is_empty()),
        };
        let Some(bytes) = next else {
            match source {
                Source::Http1(source) => self.trailers = source.take_trailers(),
                Source::Http2(source) => self.trailers = source.trailers().await?,
                Source::Read(_) => {}
            }
            self.source = None;
            return Ok(None);
        };
        self.read_bytes += bytes.len() as u64;
        if self.read_bytes > self.limit_bytes {
            // Even if it ended in what has been read: whether it did is chance, and the
            // connection's end is not to be.
            if let Source::Http1(source) = source {
                source.io.body_finished.set(false);
            }
            return Err(BodyError::TooLarge(self.limit_bytes));
        }
        match &mut self.given {
            Some(given) => given.resize(bytes.len() as u64)?,
            None => self.given = Some(self.share.reserve(Resource::Memory, bytes.len() as u64)?),
        }
        Ok(Some(bytes))
    }
}

impl Http1Source {
    async fn next(&mut self) -> Result<Option<Bytes>, BodyError> {
        loop {
            if let Some(taken) = self.take_unread()? {
                return Ok(Some(taken));
            }
            if self.io.body_finished.get() {
                return Ok(None);
            }
            self.fill().await?;
        }
    }

    fn take_trailers(&mut self) -> Option<Trailers> {
        match &mut self.framing {
            Framing::Chunked(decoder) => decoder.take_trailers(),
            Framing::Exact { .. } => None,
        }
    }

    /// Takes data of the body out of what has been read already.
    fn take_unread(&mut self) -> Result<Option<Bytes>, BodyError> {
        let mut unread = self.io.unread.borrow_mut();
        match &mut self.framing {
            Framing::Exact { left } => {
                let taken = usize::try_from(*left).unwrap_or(usize::MAX).min(unread.len());
                *left -= taken as u64;
                self.io.body_finished.set(*left == 0);
                Ok((taken > 0).then(|| take_front(&mut unread, taken)))
            }
            Framing::Chunked(decoder) => {
                let mut data = Vec::new();
                let mut at = 0;
                loop {
                    match decoder.decode(&unread[at..])? {
                        Event::Data { start, end } => {
                            data.extend_from_slice(&unread[at + start..at + end]);
                            at += end;
                        }
                        Event::NeedMore => {
                            at = unread.len();
                            break;
                        }
                        Event::End { consumed } => {
                            at += consumed;
                            self.io.body_finished.set(true);
                            break;
                        }
                    }
                }
                drop(take_front(&mut unread, at));
                Ok((!data.is_empty()).then(|| Bytes::from(data)))
            }
        }
    }

    /// Reads more; first tells a client that waits for it to go on.
    async fn fill(&mut self) -> Result<(), BodyError> {
        self.io.begin_wait(&mut self.pace);
        if std::mem::take(&mut self.expects_continue) {
            let mut line = Unsent::one(Bytes::from_static(b"HTTP/1.1 100 Continue\r\n\r\n"));
            poll_fn(|context| line.poll_flush(&self.io, context)).await?;
        }
        // The size of what is missing, so that a large body is not read through a small buffer, nor
        // a small one through a large.
        let wanted = match self.framing {
            Framing::Exact { left } => usize::try_from(left).unwrap_or(READ_BYTES).min(READ_BYTES),
            Framing::Chunked(_) => READ_BYTES,
        };
        // No memory is held while the client is waited for.
        let (mut buffer, read) = poll_fn(|context| {
            let mut buffer = vec![0; wanted];
            self.io.poll_read(context, &mut buffer).map_ok(|read| (buffer, read))
        })
        .await?;
        self.io.progress(&mut self.pace, read);
        self.io.end_wait(&mut self.pace);
        if read == 0 {
            return Err(BodyError::Ended);
        }
        buffer.truncate(read);
        let mut unread = self.io.unread.borrow_mut();
        debug_assert!(unread.is_empty(), "only an empty buffer is filled");
        *unread = buffer;
        Ok(())
    }
}

/// Takes `count` bytes from the front; without a copy when that is all.
fn take_front(unread: &mut Vec<u8>, count: usize) -> Bytes {
    if count == unread.len() {
        return Bytes::from(std::mem::take(unread));
    }
    let rest = unread.split_off(count);
    Bytes::from(std::mem::replace(unread, rest))
}
