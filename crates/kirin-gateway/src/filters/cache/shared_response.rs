//! A response that is being stored, as other requests than the first get it.

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

/// The head, and the body as far as it has arrived.
#[derive(Debug)]
pub struct SharedResponse {
    /// The status of the place.
    pub status: StatusCode,
    /// The fields that are stored, as clients see them.
    fields: FieldLines,
    /// The rules by which it may be reused.
    pub policy: Policy,
    /// The place in the store where it will be.
    pub keep: Keep,
    body: Arc<FillingBody>,
}

impl SharedResponse {
    /// Creates a response whose head has arrived. `fields` are those that are stored, `length` is
    /// the length of its body in bytes, if it is known. The returned body is for the request that
    /// started the fetch.
    pub fn new(
        status: StatusCode,
        mut fields: FieldLines,
        policy: Policy,
        keep: Keep,
        length: Option<u64>,
    ) -> (Arc<Self>, Filler, Body) {
        surrogate::remove_consumed(&mut fields);
        let (body, filler, reader) = FillingBody::new(length, keep.limit_bytes() as u64);
        let response = Self { status, fields: fields.prepare(), policy, keep, body };
        (Arc::new(response), filler, Body::Stream(Box::new(reader)))
    }

    /// Returns the response to `request`: 200, 206, 304, 412 or 416. Returns `None` if that cannot
    /// be known before the end of the body, or if the first bytes of the body are gone.
    pub fn answer(&self, request: &RequestHead<'_>) -> Option<Response> {
        let asked = RequestFields::from_head(request);
        let etag = self.fields.get("etag").map(Tag::parse);
        // A response without a tag gets one that is made from its body.
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
            // The parts are not in the order in which the body arrives.
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
