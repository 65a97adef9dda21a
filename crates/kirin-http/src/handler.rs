//! The interface between the connection engine and the program that answers requests.

use std::pin::Pin;

use crate::client_certificate::ClientCertificate;
use crate::forwarded::ForwardedFields;
use crate::listen_address::ListenAddress;
use crate::peer::Peer;
use crate::request::RequestHead;
use crate::request_body::RequestBody;
use crate::request_notes::RequestNotes;
use crate::response::Response;

/// Answers requests on one event loop. It runs on the loop's own thread, so it needs no lock and
/// must not block.
pub trait Handler: 'static {
    /// Answers `request`. It answers at once if the response is in memory.
    ///
    /// The head borrows from the connection's read buffer. A later answer must take out here what
    /// it needs of the head.
    fn answer(&self, request: &RequestHead<'_>, origin: Origin<'_>) -> Answer;
}

/// Where a request came from, and where it arrived.
#[derive(Clone, Copy, Debug)]
pub struct Origin<'a> {
    /// The client.
    pub peer: &'a Peer,
    /// The listener's address as bound.
    pub local: &'a ListenAddress,
    /// Whether the connection is encrypted.
    pub secure: bool,
    /// The identity that the client has proved.
    pub client: Client<'a>,
    /// The trusted proxy that has passed the request on. It may be `peer` itself.
    pub proxy: Option<TrustedProxy<'a>>,
    /// Whole seconds since the unix epoch, by the loop's steady clock, which nobody sets
    /// (`kirin-clock`).
    pub now: u64,
    /// The notes about the request, for logs, metrics and traces.
    pub notes: &'a RequestNotes,
}

/// A proxy that is trusted to name its clients.
#[derive(Clone, Copy, Debug)]
pub struct TrustedProxy<'a> {
    /// Its own address.
    pub peer: &'a Peer,
    /// The fields in which it names the client. The other fields may come from a stranger.
    pub fields: &'a ForwardedFields,
}

/// The identity that a client has proved in the TLS handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Client<'a> {
    /// It was not asked for a certificate.
    NotRequested,
    /// It has presented no certificate.
    Anonymous,
    /// It has presented a certificate, which was verified.
    Verified(&'a ClientCertificate),
}

/// The answer of a handler.
pub enum Answer {
    /// The response. A request body is not read.
    Now(Response),
    /// The response needs waiting, or needs the body of the request.
    Later(Later),
}

/// Starts the work that ends in a response. Called once, with the body of the request.
pub type Later = Box<dyn FnOnce(RequestBody) -> Pin<Box<dyn Future<Output = Response>>>>;

impl Answer {
    /// Returns an answer that `work` gives later.
    pub fn later<W, F>(work: W) -> Self
    where
        W: FnOnce(RequestBody) -> F + 'static,
        F: Future<Output = Response> + 'static,
    {
        Answer::Later(Box::new(move |body| Box::pin(work(body))))
    }

    /// Changes the response with `change`.
    pub fn map(self, change: impl FnOnce(Response) -> Response + 'static) -> Self {
        match self {
            Answer::Now(response) => Answer::Now(change(response)),
            Answer::Later(later) => {
                Answer::later(move |body| async move { change(later(body).await) })
            }
        }
    }

    /// Returns the response to the request with this body.
    pub async fn response(self, body: RequestBody) -> Response {
        match self {
            Answer::Now(response) => response,
            Answer::Later(later) => later(body).await,
        }
    }
}
