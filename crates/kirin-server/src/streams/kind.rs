//! The kind of a request, which decides how its response is sent.

use http::StatusCode;
use kirin_http::body::Body;
use kirin_http::response::Response;

/// The properties of a request that decide how its response is sent.
#[derive(Clone, Copy)]
pub(crate) struct RequestKind {
    pub(crate) is_head: bool,
    /// Whether it opens a WebSocket (RFC 8441, RFC 9220).
    pub(crate) is_websocket: bool,
}

impl RequestKind {
    /// Returns the response, or an error instead of one that this request cannot have.
    pub(crate) fn suitable(self, response: Response) -> Response {
        // HTTP/2 and HTTP/3 have no Upgrade, so no client has asked for that (RFC 9113 section 8.6,
        // RFC 9114 section 4.5).
        if matches!(response.body, Body::Tunnel(_)) || response.status.is_informational() {
            return Response::error(StatusCode::BAD_GATEWAY);
        }
        // Any 2xx would say that the WebSocket is open (RFC 8441 section 5).
        if self.is_websocket && response.status.is_success() {
            return Response::error(StatusCode::NOT_IMPLEMENTED);
        }
        response
    }
}
