//! Responses: status, field lines and body. The connection engine adds the framing.

use http::StatusCode;

use crate::body::Body;
use crate::field_lines::FieldLines;

/// The part of the server that made a response. The access log names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnsweredBy(&'static str);

impl AnsweredBy {
    /// The server itself: errors and redirects.
    pub const SERVER: Self = Self("kirin");

    /// Returns the label of a part that the access log calls `name`.
    pub const fn new(name: &'static str) -> Self {
        Self(name)
    }

    /// Returns the name in the access log.
    pub fn name(self) -> &'static str {
        self.0
    }
}

/// What the access log says about a response before any of it is sent.
#[derive(Clone, Copy, Debug)]
pub struct ResponseSummary {
    /// The status code.
    pub status: StatusCode,
    /// The part of the server that answered.
    pub answered_by: AnsweredBy,
}

/// The response to one request.
#[derive(Debug)]
pub struct Response {
    /// The status code. It is informational (1xx) only for a tunnel.
    pub status: StatusCode,
    /// All fields but the framing fields.
    pub fields: FieldLines,
    /// The body. The engine leaves its bytes out for HEAD, 204 and 304.
    pub body: Body,
    /// The part of the server that answered.
    pub answered_by: AnsweredBy,
}

impl Response {
    /// Returns a response without field lines.
    pub fn new(answered_by: AnsweredBy, status: StatusCode, body: Body) -> Self {
        Self { status, fields: FieldLines::new(), body, answered_by }
    }

    /// Returns what the access log says about it.
    pub fn summary(&self) -> ResponseSummary {
        ResponseSummary { status: self.status, answered_by: self.answered_by }
    }

    /// Returns Kirin's own response for `status`: a short plain text that names it.
    pub fn error(status: StatusCode) -> Self {
        let reason = status.canonical_reason().unwrap_or("Error");
        let text = format!("{} {reason}\n", status.as_u16());
        let mut response = Self::new(AnsweredBy::SERVER, status, Body::from(text.into_bytes()));
        response.fields.push("Content-Type", "text/plain; charset=utf-8");
        response
    }

    /// Returns 499, with which nginx logs that the client has gone before it got a response. No
    /// client receives it.
    pub fn client_gone_status() -> StatusCode {
        StatusCode::from_u16(499).unwrap_or(StatusCode::BAD_REQUEST)
    }

    /// Returns the response to a request for whose client no more bytes can be held.
    pub fn no_room() -> Self {
        let mut response = Self::error(StatusCode::SERVICE_UNAVAILABLE);
        response.fields.push("Retry-After", "5");
        response
    }

    /// Returns whether a response with this status never has a body (RFC 9110 section 6.4.1): 1xx,
    /// 204, 304.
    pub fn is_bodiless_status(status: StatusCode) -> bool {
        status.is_informational()
            || status == StatusCode::NO_CONTENT
            || status == StatusCode::NOT_MODIFIED
    }
}
