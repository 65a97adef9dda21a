//! From a file and a request to the response.

use crate::byte_range::{self, Part};
use crate::found::StaticFile;
use crate::preconditions::{self, Verdict};
use crate::request_fields::RequestFields;
use http::{Method, StatusCode};
use kirin_http::{Body, Place, RequestHead, Response};

/// The response to a GET or HEAD for `file`.
pub(crate) fn respond(file: &StaticFile, request: &RequestHead<'_>) -> Response {
    let fields = RequestFields::of(request);
    let representation = file.select(fields.accept_encoding.as_deref());
    match preconditions::evaluate(&fields, representation.validators()) {
        Verdict::Proceed => {}
        Verdict::NotModified => {
            let mut response = Response::new(Place::Files, StatusCode::NOT_MODIFIED, Body::Empty);
            response.fields = representation.not_modified.clone();
            return response;
        }
        Verdict::Failed => return refusal(StatusCode::PRECONDITION_FAILED),
    }
    let size = representation.file.size();
    let is_head = request.method == Method::HEAD;
    let part = match &fields.range {
        // Range means nothing to HEAD (RFC 9110 section 14.2).
        Some(range)
            if !is_head
                && preconditions::range_applies(fields.if_range.as_deref(), representation.validators()) =>
        {
            byte_range::part(range, size)
        }
        _ => Part::Whole,
    };
    let (status, start, length) = match part {
        Part::Whole => (StatusCode::OK, 0, size),
        Part::Range { start, length } => (StatusCode::PARTIAL_CONTENT, start, length),
        Part::Unsatisfiable => {
            let mut response = refusal(StatusCode::RANGE_NOT_SATISFIABLE);
            response.fields.push("Content-Range", format!("bytes */{size}"));
            return response;
        }
    };
    let body = if is_head { Body::Withheld(length) } else { representation.file.body(start, length) };
    let mut response = Response::new(Place::Files, status, body);
    response.fields = representation.fields.clone();
    if status == StatusCode::PARTIAL_CONTENT {
        let last = start + length - 1;
        response.fields.push("Content-Range", format!("bytes {start}-{last}/{size}"));
    }
    response
}

/// A refusal, with a short text.
pub(crate) fn refusal(status: StatusCode) -> Response {
    let mut response = Response::error(status);
    response.place = Place::Files;
    response
}
