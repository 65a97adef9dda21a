//! Why a request has no response from its upstream.

use std::io;

use kirin_http::response_head::BadResponse;
use kirin_http::{BodyError, Response, SpoolError, StatusCode, is_out_of_descriptors};

/// Why there is no response. What the log says.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("it has no server: its names have no addresses")]
    NoServer,
    #[error("none of its servers that are left to try is healthy")]
    AllUnhealthy,
    #[error("all of its servers are at their limit (`max_in_flight`), and the queue is full")]
    QueueFull,
    #[error(
        "all of its servers were at their limit (`max_in_flight`) for as long as the request could wait"
    )]
    QueueTimeout,
    #[error("cannot be connected to: {0}")]
    Connect(io::Error),
    #[error("connecting took too long")]
    ConnectTimeout,
    /// Nothing of the request has reached it, or it says that it has looked at nothing of it.
    #[error("ended the connection before it saw the request: {0}")]
    NotSent(io::Error),
    /// It may have seen the request, and has said nothing.
    #[error("ended the connection without a response{0}")]
    Closed(Because),
    #[error("ended the connection inside the response's head{0}")]
    Truncated(Because),
    #[error("took nothing more of the request for too long")]
    SendTimeout,
    #[error("sent no response for too long")]
    FirstByteTimeout,
    #[error(transparent)]
    Response(#[from] BadResponse),
    /// From a server that speaks CGI's way.
    #[error(transparent)]
    CgiHead(#[from] kirin_cgi::BadHead),
    /// The client's own fault, more or less.
    #[error(transparent)]
    RequestTooLong(#[from] kirin_cgi::uwsgi::TooLong),
    #[error("body of the response: {0}")]
    Body(String),
    #[error("reset the stream or ended the connection: {0}")]
    Stream(io::Error),
    /// Nothing that HTTP/2 has a place for, which is the client's fault.
    #[error("target or host cannot be sent by HTTP/2")]
    NotForHttp2,
    /// The client's own fault.
    #[error(transparent)]
    RequestBody(#[from] BodyError),
    #[error(transparent)]
    Spool(#[from] SpoolError),
    /// Nobody waits for the response any more.
    #[error("the client has gone")]
    ClientGone,
}

/// The error that told of a connection's end; none if it ended in order.
#[derive(Debug)]
pub(crate) struct Because(pub(crate) Option<io::Error>);

impl std::fmt::Display for Because {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0 {
            Some(error) => write!(f, ": {error}"),
            None => Ok(()),
        }
    }
}

impl Failure {
    /// What the client gets.
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Failure::ConnectTimeout | Failure::SendTimeout | Failure::FirstByteTimeout => {
                StatusCode::GATEWAY_TIMEOUT
            }
            Failure::RequestBody(error) => error.status(),
            Failure::NotForHttp2 => StatusCode::BAD_REQUEST,
            Failure::Spool(error) => error.status(),
            Failure::RequestTooLong(_) => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            Failure::ClientGone => Response::client_gone_status(),
            Failure::Connect(error) if is_out_of_descriptors(error) => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            Failure::QueueFull | Failure::QueueTimeout => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::BAD_GATEWAY,
        }
    }

    /// Whether no server has seen anything of the request.
    pub(crate) fn is_unsent(&self) -> bool {
        matches!(self, Failure::Connect(_) | Failure::ConnectTimeout | Failure::NotSent(_))
    }

    /// Whether the server may have seen the request, and has given no sign that it has understood
    /// it.
    pub(crate) fn is_unanswered(&self) -> bool {
        matches!(self, Failure::Closed(_) | Failure::Truncated(_))
    }

    /// Whether it speaks against the server.
    pub(crate) fn is_servers(&self) -> bool {
        match self {
            Failure::Connect(error) => !is_out_of_descriptors(error),
            Failure::NoServer | Failure::AllUnhealthy => false,
            Failure::QueueFull | Failure::QueueTimeout => false,
            Failure::RequestBody(_) | Failure::Spool(_) | Failure::ClientGone => false,
            Failure::RequestTooLong(_) => false,
            _ => true,
        }
    }

    /// Whether it is the upstream's doing, or our own, and belongs in the log.
    pub(crate) fn is_worth_a_line(&self) -> bool {
        !matches!(self, Failure::ClientGone | Failure::RequestBody(_) | Failure::NotForHttp2)
    }
}
