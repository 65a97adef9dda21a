//! The reasons why a request has no response from its upstream.

use std::io;

use kirin_http::response_head::BadResponse;
use kirin_http::{BodyError, Response, StatusCode};
use kirin_spool::{SpoolError, is_out_of_descriptors};

/// The reason why there is no response. The texts are for the log.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProxyFailure {
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
    /// The server has not seen the request, or says that it has not looked at it.
    #[error("ended the connection before it saw the request: {0}")]
    NotSent(io::Error),
    /// The server may have seen the request. It has sent nothing.
    #[error("ended the connection without a response{0}")]
    Closed(ConnectionEnd),
    #[error("ended the connection inside the response's head{0}")]
    Truncated(ConnectionEnd),
    #[error("took nothing more of the request for too long")]
    SendTimeout,
    #[error("sent no response for too long")]
    FirstByteTimeout,
    #[error(transparent)]
    Response(#[from] BadResponse),
    /// The response head of a FastCGI, SCGI or uwsgi server is malformed.
    #[error(transparent)]
    CgiHead(#[from] kirin_cgi::BadHead),
    /// The request does not fit into the uwsgi protocol.
    #[error(transparent)]
    RequestTooLong(#[from] kirin_cgi::uwsgi::TooLong),
    #[error("body of the response: {0}")]
    Body(String),
    #[error("reset the stream or ended the connection: {0}")]
    Stream(io::Error),
    /// HTTP/2 cannot express the request's target or host. The client gets 400.
    #[error("target or host cannot be sent by HTTP/2")]
    NotForHttp2,
    #[error(
        "names a file for Kirin to send (`X-Sendfile` or `X-Accel-Redirect`), which is not allowed here: add `sendfile` or `accel_redirect` to its upstream"
    )]
    NamedFile,
    /// The client has not sent the body correctly.
    #[error(transparent)]
    RequestBody(#[from] BodyError),
    #[error(transparent)]
    Spool(#[from] SpoolError),
    /// No client waits for the response any more.
    #[error("the client has gone")]
    ClientGone,
}

/// The error that ended a connection; `None` for an orderly end.
#[derive(Debug)]
pub(crate) struct ConnectionEnd(pub(crate) Option<io::Error>);

impl std::fmt::Display for ConnectionEnd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0 {
            Some(error) => write!(f, ": {error}"),
            None => Ok(()),
        }
    }
}

impl ProxyFailure {
    /// Returns the status for the client.
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            ProxyFailure::ConnectTimeout
            | ProxyFailure::SendTimeout
            | ProxyFailure::FirstByteTimeout => StatusCode::GATEWAY_TIMEOUT,
            ProxyFailure::RequestBody(error) => error.status(),
            ProxyFailure::NotForHttp2 => StatusCode::BAD_REQUEST,
            ProxyFailure::Spool(error) => error.status(),
            ProxyFailure::RequestTooLong(_) => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            ProxyFailure::ClientGone => Response::client_gone_status(),
            ProxyFailure::Connect(error) if is_out_of_descriptors(error) => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            ProxyFailure::QueueFull | ProxyFailure::QueueTimeout => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::BAD_GATEWAY,
        }
    }

    /// Returns the response to the client.
    pub(crate) fn response(&self) -> Response {
        match self {
            ProxyFailure::RequestBody(error) => error.response(),
            ProxyFailure::Spool(error) => error.response(),
            ProxyFailure::QueueFull | ProxyFailure::QueueTimeout => {
                let mut response = Response::error(self.status());
                response.fields.push("Retry-After", "1");
                response
            }
            failure => Response::error(failure.status()),
        }
    }

    /// Returns whether no server has seen anything of the request.
    pub(crate) fn is_unsent(&self) -> bool {
        matches!(
            self,
            ProxyFailure::Connect(_) | ProxyFailure::ConnectTimeout | ProxyFailure::NotSent(_)
        )
    }

    /// Returns whether the server may have seen the request without any sign that it has processed
    /// it.
    pub(crate) fn is_unanswered(&self) -> bool {
        matches!(self, ProxyFailure::Closed(_) | ProxyFailure::Truncated(_))
    }

    /// Returns whether the failure counts against the server.
    pub(crate) fn is_server_fault(&self) -> bool {
        match self {
            ProxyFailure::Connect(error) => !is_out_of_descriptors(error),
            ProxyFailure::NoServer | ProxyFailure::AllUnhealthy => false,
            ProxyFailure::QueueFull | ProxyFailure::QueueTimeout => false,
            ProxyFailure::RequestBody(_) | ProxyFailure::Spool(_) | ProxyFailure::ClientGone => {
                false
            }
            ProxyFailure::RequestTooLong(_) | ProxyFailure::NamedFile => false,
            _ => true,
        }
    }

    /// Returns whether the log should warn, because the cause is the upstream or Kirin itself.
    pub(crate) fn is_warning(&self) -> bool {
        !matches!(
            self,
            ProxyFailure::ClientGone | ProxyFailure::RequestBody(_) | ProxyFailure::NotForHttp2
        )
    }
}
