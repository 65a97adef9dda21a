//! Responses: status, field lines and body. The connection engine adds the framing.

use http::StatusCode;

use crate::body::Body;
use crate::field_lines::FieldLines;
use crate::request_id::RequestId;

/// The part of the server that made a response. The access log names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
        let text = error_text(status).into_bytes();
        let mut response = Self::new(AnsweredBy::SERVER, status, Body::from(text));
        response.fields.push("Content-Type", "text/plain; charset=utf-8");
        response
    }

    /// Adds the id of the request if Kirin itself answers that it could not serve the request. The
    /// visitor can tell the id, and the operator finds it in the log.
    pub fn add_request_id(&mut self, id: &RequestId) {
        if !self.status.is_server_error() || self.answered_by != AnsweredBy::SERVER {
            return;
        }
        self.fields.push("X-Request-Id", id.to_string());
        let text = error_text(self.status);
        // A page of the site may be in its place.
        if matches!(&self.body, Body::Bytes(bytes) if *bytes == text) {
            self.body = Body::from(format!("{text}Request id: {id}\n").into_bytes());
        }
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

fn error_text(status: StatusCode) -> String {
    format!("{} {}\n", status.as_u16(), status.canonical_reason().unwrap_or("Error"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_failures_of_the_server_name_the_request() {
        let id = RequestId::Made(10);
        let named = |mut response: Response| {
            response.add_request_id(&id);
            let Body::Bytes(body) = response.body else { panic!("{:?}", response.body) };
            (response.fields.iter().count(), String::from_utf8(body.to_vec()).unwrap())
        };
        let text = "502 Bad Gateway\nRequest id: 0000000000000000000000000000000a\n";
        assert_eq!(named(Response::error(StatusCode::BAD_GATEWAY)), (2, text.into()));
        let not_found = Response::error(StatusCode::NOT_FOUND);
        assert_eq!(named(not_found), (1, "404 Not Found\n".into()));
        let page =
            Response { body: Body::from("sorry"), ..Response::error(StatusCode::BAD_GATEWAY) };
        assert_eq!(named(page), (2, "sorry".into()));
        let app = Response {
            answered_by: AnsweredBy::new("app"),
            ..Response::error(StatusCode::BAD_GATEWAY)
        };
        assert_eq!(named(app).0, 1);
    }
}
