//! A response that is being stored, as it answers others than the request that it was asked for by.

use std::sync::Arc;

use http::{Method, StatusCode};
use kirin_cache::{Policy, surrogate};
use kirin_http::body::UnknownLength;
use kirin_http::byte_range::{Part, part_of};
use kirin_http::date::parse_date;
use kirin_http::entity_tag::Tag;
use kirin_http::preconditions::{self, Validators, Verdict};
use kirin_http::{Body, FieldLines, RequestFields, RequestHead, Response, partial_content};

use super::filling_body::{Filler, FillingBody};
use super::keep::Keep;
use crate::request::answered_by;

/// Its head, and its body as far as it has come.
#[derive(Debug)]
pub struct SharedResponse {
    status: StatusCode,
    /// Those that are stored, as clients see them.
    fields: FieldLines,
    /// What may be done with it.
    pub policy: Policy,
    /// Where it will be stored.
    pub keep: Keep,
    body: Arc<FillingBody>,
}

impl SharedResponse {
    /// A response whose head has come; `fields` are those that are stored, `length` that of its
    /// body, if it is known. The body is for the request that it was asked for by.
    pub fn new(
        status: StatusCode,
        mut fields: FieldLines,
        (policy, keep): (Policy, Keep),
        length: Option<u64>,
    ) -> (Arc<Self>, Filler, Body) {
        surrogate::remove_consumed(&mut fields);
        let (body, filler, reader) = FillingBody::new(length, keep.limit_bytes() as u64);
        let response = Self { status, fields: fields.prepare(), policy, keep, body };
        (Arc::new(response), filler, Body::Stream(Box::new(reader)))
    }

    /// The response to `request`: 200, 206, 304, 412 or 416, as far as that can be said before the
    /// end. None if it cannot, or if the body is not to be had from its beginning.
    pub fn answer(&self, request: &RequestHead<'_>) -> Option<Response> {
        let asked = RequestFields::of(request);
        let etag = self.fields.get("etag").map(Tag::of);
        // The tag of what has none is made of the body.
        if asked.if_match.is_some() && etag.is_none() {
            return None;
        }
        let validators = Validators {
            entity_tag: etag.unwrap_or(Tag::Absent),
            last_modified: self.fields.get("last-modified").and_then(parse_date),
        };
        // "if the response without the conditions would be other than 2xx" they count for nothing
        // (RFC 9110 section 13.2.1).
        if self.status.is_success() {
            match preconditions::evaluate(&asked, validators) {
                Verdict::Proceed => {}
                Verdict::NotModified => {
                    return Some(self.respond(StatusCode::NOT_MODIFIED, Body::Empty));
                }
                Verdict::Failed => {
                    let response = Response::error(StatusCode::PRECONDITION_FAILED);
                    return Some(Response { answered_by: answered_by::CACHE, ..response });
                }
            }
        }
        let length = self.body.length();
        if request.method == Method::HEAD {
            let withheld = || Body::Stream(Box::new(UnknownLength));
            return Some(self.respond(self.status, length.map_or_else(withheld, Body::Withheld)));
        }
        let part = match (self.status, length) {
            (StatusCode::OK, Some(size)) => part_of(&asked, false, validators, size),
            (StatusCode::OK, None) if asked.range.is_some() => return None,
            _ => Part::Whole,
        };
        match part {
            Part::Whole => {
                let reader = self.body.reader(None)?;
                Some(self.respond(self.status, Body::Stream(Box::new(reader))))
            }
            Part::Range(range) => {
                let reader = self.body.reader(Some(range))?;
                let mut response =
                    self.respond(StatusCode::PARTIAL_CONTENT, Body::Stream(Box::new(reader)));
                response.fields.push("Content-Range", range.content_range(length?));
                Some(response)
            }
            // One part after the other is not the order in which they come.
            Part::Several(_) => None,
            Part::Unsatisfiable => {
                let none = |_| Body::Empty;
                Some(partial_content::respond(
                    answered_by::CACHE,
                    FieldLines::new(),
                    length?,
                    &part,
                    false,
                    none,
                ))
            }
        }
    }

    fn respond(&self, status: StatusCode, body: Body) -> Response {
        Response { status, fields: self.fields.clone(), body, answered_by: answered_by::CACHE }
    }
}
