//! The seam between the connection engine and the program: who answers a request.

use std::pin::Pin;

use crate::client_certificate::ClientCertificate;
use crate::forwarded::ForwardedFields;
use crate::listen_address::ListenAddress;
use crate::peer::Peer;
use crate::request::RequestHead;
use crate::request_body::RequestBody;
use crate::response::Response;

/// Answers requests on one event loop. It runs on the loop's own thread: it needs no lock and must
/// not block.
pub trait Handler: 'static {
    /// Answers `request`, at once if the answer is in memory.
    ///
    /// The head borrows from the connection's read buffer: what a later answer needs of it is taken
    /// out here.
    fn answer(&self, request: &RequestHead<'_>, origin: Origin<'_>) -> Answer;
}

/// Where a request came from and arrived.
#[derive(Clone, Copy, Debug)]
pub struct Origin<'a> {
    /// The client.
    pub peer: &'a Peer,
    /// The listener's address as bound.
    pub local: &'a ListenAddress,
    /// Whether the connection is encrypted.
    pub secure: bool,
    /// Who the client says to be.
    pub client: Client<'a>,
    /// The trusted proxy that has passed the request on, which `peer` may be itself.
    pub proxy: Option<TrustedProxy<'a>>,
    /// The loop's steady clock: whole seconds since the unix epoch that nobody sets
    /// (`kirin-clock`).
    pub now: u64,
}

/// A proxy whose word about its clients is taken.
#[derive(Clone, Copy, Debug)]
pub struct TrustedProxy<'a> {
    /// Its own address.
    pub peer: &'a Peer,
    /// Where it writes what it knows. What the other fields say may be a stranger's word.
    pub fields: ForwardedFields,
}

/// What a client has shown in the TLS handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Client<'a> {
    /// It was not asked for a certificate.
    NotAsked,
    /// It has none.
    Anonymous,
    /// A certificate that has been verified.
    Verified(&'a ClientCertificate),
}

/// What a handler gives back.
pub enum Answer {
    /// The response; a request body, if any, is not looked at.
    Now(Response),
    /// The response takes waiting, or the body of the request.
    Later(Later),
}

/// Starts the work that ends in a response. Called once, with the request's body.
pub type Later = Box<dyn FnOnce(RequestBody) -> Pin<Box<dyn Future<Output = Response>>>>;

impl Answer {
    /// An answer that `work` gives later.
    pub fn later<W, F>(work: W) -> Self
    where
        W: FnOnce(RequestBody) -> F + 'static,
        F: Future<Output = Response> + 'static,
    {
        Answer::Later(Box::new(move |body| Box::pin(work(body))))
    }

    /// The response to the request with this body.
    pub async fn response(self, body: RequestBody) -> Response {
        match self {
            Answer::Now(response) => response,
            Answer::Later(later) => later(body).await,
        }
    }
}
