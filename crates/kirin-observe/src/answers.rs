//! The requests and answers of the admin listener.

use http::StatusCode;
use kirin_http::media_type::essence;
use kirin_http::{AnsweredBy, Body, RequestBody, RequestHead, Response};

/// The largest request body in bytes.
const BODY_LIMIT_BYTES: u64 = 1024 * 1024;

/// Returns the refusal of a request whose body is not JSON. This keeps out web pages: browsers do
/// not let pages of other sites send this type without a preflight request (CORS).
pub fn refusal_of_body(request: &RequestHead<'_>) -> Option<Response> {
    let media_type = request.field("content-type").unwrap_or_default();
    let is_json = essence(media_type).eq_ignore_ascii_case(b"application/json");
    let message = "Content-Type is application/json\n";
    (!is_json).then(|| text(StatusCode::UNSUPPORTED_MEDIA_TYPE, message))
}

/// Returns the body of a request, or the status of its refusal.
pub async fn read(mut body: RequestBody) -> Result<Vec<u8>, StatusCode> {
    body.limit(BODY_LIMIT_BYTES);
    let mut whole = Vec::new();
    while let Some(chunk) = body.chunk().await.map_err(|error| error.status())? {
        whole.extend_from_slice(&chunk);
    }
    Ok(whole)
}

/// Returns an answer with a value.
pub fn json(value: &serde_json::Value) -> Response {
    let body = Body::from(format!("{value:#}\n").into_bytes());
    let mut response = Response::new(AnsweredBy::SERVER, StatusCode::OK, body);
    response.fields.push("Content-Type", "application/json");
    response.fields.push("Cache-Control", "no-store");
    response
}

/// Returns an answer with a text.
pub fn text(status: StatusCode, text: &str) -> Response {
    let mut response =
        Response::new(AnsweredBy::SERVER, status, Body::from(text.as_bytes().to_vec()));
    response.fields.push("Content-Type", "text/plain; charset=utf-8");
    response
}

/// Returns the refusal of a method. `allow` is the value of `Allow`.
pub fn not_allowed(allow: &'static str) -> Response {
    let mut response = Response::error(StatusCode::METHOD_NOT_ALLOWED);
    response.fields.push("Allow", allow);
    response
}
