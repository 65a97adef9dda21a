//! Request bodies. The handler reads the body when it needs it.

use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::StatusCode;
use http::header::HeaderName;
use kirin_client_bytes::{ClientShare, NoRoom, Reservation, Resource};

use crate::body_copy::BodyCopy;
use crate::chunked::ChunkedError;
use crate::client_watch::ClientWatch;
use crate::informational::Informational;
use crate::request::BodyLength;
use crate::response::Response;
use crate::trailers::{TooManyTrailers, Trailers};

/// The body of a request, given out piece by piece, without its framing.
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
    /// The trailers that came behind the body.
    trailers: Option<Trailers>,
    /// Names of fields that are left out of the trailers.
    no_trailers: Vec<HeaderName>,
    /// Gets a copy of the bytes that are given out.
    copy: Option<Rc<BodyCopy>>,
}

enum Source {
    Client(Box<dyn BodySource>),
    Read(Bytes),
}

/// The connection or stream that the data of a request body comes from.
pub trait BodySource {
    /// Begins a new wait for data. The wait before it may have been given up.
    fn begin_wait(&mut self);

    /// Returns the next data, which is never empty, or `None` at the end.
    fn poll_data(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, BodyError>>;

    /// Returns the trailers. Called after the end of the data.
    fn poll_trailers(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Option<Trailers>, BodyError>>;

    /// Returns whether nothing more comes, as far as is known without waiting.
    fn has_ended(&self) -> bool;

    /// Returns whether trailers may follow the data.
    fn may_have_trailers(&self) -> bool;

    /// Notes that the rest of the body is refused, so that no request can follow it on the
    /// connection.
    fn refuse_rest(&mut self);
}

/// Why a body could not be read to its end.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    /// It is longer than the limit of the route.
    #[error("request body is larger than {0} bytes")]
    TooLarge(u64),
    /// The chunked coding is malformed.
    #[error(transparent)]
    Chunked(#[from] ChunkedError),
    /// It has too many trailers.
    #[error(transparent)]
    Trailers(#[from] TooManyTrailers),
    /// The server holds too many bytes for this client, or for all clients.
    #[error(transparent)]
    NoRoom(#[from] NoRoom),
    /// The client disconnected or was too slow.
    #[error("client ended the connection inside the request body")]
    Ended,
    /// The socket failed.
    #[error("request body: {0}")]
    Io(#[from] std::io::Error),
}

impl BodyError {
    /// Returns the status to answer with.
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

    /// Returns the response to the client.
    pub fn response(&self) -> Response {
        match self {
            BodyError::NoRoom(_) => Response::no_room(),
            error => Response::error(error.status()),
        }
    }
}

impl RequestBody {
    /// Returns the body of a request without one.
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
            copy: None,
        }
    }

    /// Returns this body again. It was read to its end, and its data is `read`. This is for a
    /// second reader of the same request.
    pub fn again(self, read: Bytes) -> Self {
        let source = (!read.is_empty()).then_some(Source::Read(read));
        Self { source, read_bytes: 0, ..self }
    }

    /// Returns a body whose data is in memory.
    pub fn from_bytes(body: Bytes) -> Self {
        let length = match body.len() as u64 {
            0 => BodyLength::None,
            length => BodyLength::Exact(length),
        };
        Self { length, ..Self::empty() }.again(body)
    }

    /// Returns a body that is announced by `length` and comes from `source`.
    pub fn new(source: Box<dyn BodySource>, length: BodyLength) -> Self {
        Self { source: Some(Source::Client(source)), length, ..Self::empty() }
    }

    /// Adds the sender of informational responses, if the client understands them.
    #[must_use]
    pub fn with_informational(self, informational: Informational) -> Self {
        Self { informational: Some(informational), ..self }
    }

    /// Adds the watch over the client.
    #[must_use]
    pub fn with_client(self, client: ClientWatch) -> Self {
        Self { client: Some(client), ..self }
    }

    /// Adds the client for which the bytes are counted.
    #[must_use]
    pub fn with_share(self, share: ClientShare) -> Self {
        Self { share, ..self }
    }

    /// Returns the client for which bytes of this request are counted.
    pub fn share(&self) -> &ClientShare {
        &self.share
    }

    /// Hands over the count of the bytes that were given out last.
    pub fn take_reservation(&mut self) -> Option<Reservation> {
        self.given.take()
    }

    /// Copies the bytes that are given out from now on.
    pub fn copy_to(&mut self, copy: Rc<BodyCopy>) {
        self.copy = Some(copy);
    }

    /// Leaves fields of these names out of the trailers: those that `Connection` of the head names
    /// (RFC 9110 section 7.6.1).
    pub fn leave_out_of_trailers(&mut self, names: Vec<HeaderName>) {
        self.no_trailers = names;
    }

    /// Returns whether trailers may still come, or have come. In HTTP/2 they may follow a body of
    /// known length, too.
    pub fn may_have_trailers(&self) -> bool {
        match &self.source {
            Some(Source::Client(source)) => source.may_have_trailers(),
            Some(Source::Read(_)) | None => self.trailers.is_some(),
        }
    }

    /// Returns whether a first piece of this length is the complete body, as far as is known
    /// without waiting.
    pub fn has_ended_with(&self, bytes: u64) -> bool {
        match &self.source {
            Some(Source::Client(source)) => source.has_ended(),
            _ => self.length == BodyLength::Exact(bytes) && !self.may_have_trailers(),
        }
    }

    /// Returns the trailers that may be passed on. Call it after the end.
    pub fn take_trailers(&mut self) -> Option<Trailers> {
        let mut trailers = self.trailers.take()?;
        trailers.remove(&self.no_trailers);
        trailers.remove_ambiguous();
        Some(trailers).filter(|trailers| !trailers.is_empty())
    }

    /// Returns the watch over the client, if it can be watched.
    pub fn client(&self) -> Option<ClientWatch> {
        self.client.clone()
    }

    /// Returns the sender of informational responses, or `None` if the client does not understand
    /// them.
    pub fn informational(&self) -> Option<Informational> {
        self.informational.clone()
    }

    /// Returns the announced length.
    pub fn length(&self) -> BodyLength {
        self.length
    }

    /// Limits the body to `bytes`. A longer body is [`BodyError::TooLarge`]; if its length is
    /// announced, no byte of it is read. The smallest of several limits counts.
    pub fn limit(&mut self, bytes: u64) {
        self.limit_bytes = self.limit_bytes.min(bytes);
    }

    /// Returns the complete body if it is no longer than `limit_bytes`. It is counted for the
    /// client as long as this `RequestBody` exists.
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

    /// Returns the next bytes, never empty, or `None` at the end. They are counted for the client
    /// until the next bytes are given out.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, BodyError> {
        if let BodyLength::Exact(length) = self.length
            && length > self.limit_bytes
        {
            return Err(BodyError::TooLarge(self.limit_bytes));
        }
        let Some(source) = &mut self.source else { return Ok(None) };
        let next = match source {
            Source::Client(source) => {
                source.begin_wait();
                poll_fn(|context| source.poll_data(context)).await?
            }
            Source::Read(read) => Some(std::mem::take(read)).filter(|read| !read.is_empty()),
        };
        let Some(bytes) = next else {
            if let Source::Client(source) = source {
                self.trailers = poll_fn(|context| source.poll_trailers(context)).await?;
            }
            self.source = None;
            if let Some(copy) = &self.copy {
                copy.end();
            }
            return Ok(None);
        };
        self.read_bytes += bytes.len() as u64;
        if self.read_bytes > self.limit_bytes {
            // The body may have ended in these bytes by chance. The connection closes in any case,
            // so that the result does not depend on how the bytes arrived.
            if let Source::Client(source) = source {
                source.refuse_rest();
            }
            return Err(BodyError::TooLarge(self.limit_bytes));
        }
        if let Some(copy) = &self.copy {
            copy.add(&bytes);
            // A reader that knows the length does not ask for the end.
            if self.has_ended_with(self.read_bytes) {
                copy.end();
            }
        }
        match &mut self.given {
            Some(given) => given.resize(bytes.len() as u64)?,
            None => self.given = Some(self.share.reserve(Resource::Memory, bytes.len() as u64)?),
        }
        Ok(Some(bytes))
    }
}
