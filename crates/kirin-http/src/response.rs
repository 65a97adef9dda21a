//! A response as a place in a route gives it: status, field lines, body. The engine adds the
//! framing.

use http::StatusCode;

use crate::body::Body;
use crate::field_lines::FieldLines;

/// Which kind of place answered; the access log says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A page or stored response in the store.
    Store,
    /// A directory.
    Files,
    /// An application's workers.
    App,
    /// A script.
    Lua,
    /// What was kept of an earlier response.
    Cache,
    /// Another HTTP server.
    Proxy,
    /// Kirin itself: errors, redirects.
    Kirin,
}

impl Place {
    /// The name in the access log and in `try` lists.
    pub fn name(self) -> &'static str {
        match self {
            Place::Store => "store",
            Place::Files => "files",
            Place::App => "app",
            Place::Lua => "lua",
            Place::Cache => "cache",
            Place::Proxy => "proxy",
            Place::Kirin => "kirin",
        }
    }
}

/// The answer to one request.
#[derive(Debug)]
pub struct Response {
    /// The status code; an informational one (1xx) only where the engine asks for it.
    pub status: StatusCode,
    /// Everything but the framing fields.
    pub fields: FieldLines,
    /// The body. For HEAD, 204 and 304 the engine leaves the bytes out itself.
    pub body: Body,
    /// Who answered.
    pub place: Place,
}

impl Response {
    /// A response without field lines.
    pub fn new(place: Place, status: StatusCode, body: Body) -> Self {
        Self { status, fields: FieldLines::new(), body, place }
    }

    /// Kirin's own answer for `status`: a short plain text that names it.
    pub fn error(status: StatusCode) -> Self {
        let reason = status.canonical_reason().unwrap_or("Error");
        let text = format!("{} {reason}\n", status.as_u16());
        let mut response = Self::new(Place::Kirin, status, Body::from(text.into_bytes()));
        response.fields.push("Content-Type", "text/plain; charset=utf-8");
        response
    }

    /// Returns 499, with which nginx logs that the client has gone before it got a response. No
    /// client receives it.
    pub fn client_gone_status() -> StatusCode {
        StatusCode::from_u16(499).unwrap_or(StatusCode::BAD_REQUEST)
    }

    /// The answer to a request for whose client no more bytes can be held.
    pub fn no_room() -> Self {
        let mut response = Self::error(StatusCode::SERVICE_UNAVAILABLE);
        response.fields.push("Retry-After", "5");
        response
    }

    /// Whether the status never has a body (RFC 9110 section 6.4.1): 1xx, 204, 304.
    pub fn is_bodiless_status(status: StatusCode) -> bool {
        status.is_informational()
            || status == StatusCode::NO_CONTENT
            || status == StatusCode::NOT_MODIFIED
    }
}
