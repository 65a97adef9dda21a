//! Makes the response from a file and a request.

use std::ops::Deref;
use std::rc::Rc;

use http::{Method, StatusCode};
use kirin_compress::{AcceptEncoding, Coding};
use kirin_http::byte_range::part_of;
use kirin_http::preconditions::{self, Candidate, Validators, Verdict};
use kirin_http::{Body, FieldLines, RequestFields, RequestHead, Response, partial_content};

use crate::entity_tag::EntityTag;
use crate::files::Files;
use crate::found::StaticFile;
use crate::representation::{Representation, not_modified};

/// A representation of a file that a client can get.
enum Selected<'a> {
    /// The original, or a variant beside it.
    Lying(&'a Representation),
    Made(Rc<Representation>),
}

impl Deref for Selected<'_> {
    type Target = Representation;

    fn deref(&self) -> &Representation {
        match self {
            Selected::Lying(representation) => representation,
            Selected::Made(representation) => representation,
        }
    }
}

impl Files {
    /// Returns the response to a GET or HEAD for `file`.
    pub(crate) fn respond(&self, file: &Rc<StaticFile>, request: &RequestHead<'_>) -> Response {
        let fields = RequestFields::from_head(request);
        let is_head = request.method == Method::HEAD;
        if !file.varies() {
            let original = file.original();
            let verdict = preconditions::evaluate(&fields, original.validators());
            return respond(original, &fields, is_head, verdict);
        }
        let accept = AcceptEncoding::parse(fields.accept_encoding.as_deref());
        // A later variant may have other bytes, and the parts would not fit together.
        let may_be_made = fields.range.is_none() || is_head;
        let chosen = accept
            .choose(&Coding::ALL, |coding| {
                file.variant(coding).is_some() || may_be_made && file.made.may_have(coding)
            })
            .and_then(|coding| match file.variant(coding) {
                Some(variant) => Some(Selected::Lying(variant)),
                None => self.make_variant(request.path, file, coding).map(Selected::Made),
            })
            .unwrap_or(Selected::Lying(file.original()));
        let verdict = preconditions::evaluate(&fields, chosen.validators());
        if verdict == Verdict::NotModified || !fields.compare_tags() {
            return respond(&chosen, &fields, is_head, verdict);
        }
        respond_to_holder(file, &fields, &accept, &chosen, is_head)
    }
}

/// The representation that a client may have.
#[derive(Clone, Copy)]
enum Held<'a> {
    /// The representation that Kirin would send.
    Chosen,
    There(&'a Representation),
    /// The tag of a variant that no longer exists, or does not exist yet.
    Tag(&'a EntityTag),
}

/// Returns the response to a client that compares tags. The client may have another representation
/// than the one that Kirin would send.
fn respond_to_holder(
    file: &StaticFile,
    fields: &RequestFields<'_>,
    accept: &AcceptEncoding,
    chosen: &Representation,
    is_head: bool,
) -> Response {
    let taken = || Coding::ALL.into_iter().filter(|coding| accept.takes(*coding));
    let tags: Vec<EntityTag> = taken()
        .filter(|coding| fields.range.is_none() && file.made.may_have(*coding))
        .map(|coding| file.made_tag(coding))
        .collect();
    let original = accept.takes_identity().then(|| file.original());
    let there = taken().filter_map(|coding| file.variant(coding)).chain(original);
    let last_modified = chosen.validators().last_modified;
    let candidate = |representation, validators| Candidate { representation, validators };
    let others = there.map(|other| candidate(Held::There(other), other.validators())).chain(
        tags.iter().map(|tag| {
            candidate(Held::Tag(tag), Validators { entity_tag: tag.as_tag(), last_modified })
        }),
    );
    match preconditions::select(fields, candidate(Held::Chosen, chosen.validators()), others) {
        (Held::There(other), verdict) => respond(other, fields, is_head, verdict),
        (Held::Tag(tag), Verdict::NotModified) => {
            response_304(not_modified(tag, &file.original().file, true))
        }
        (Held::Chosen | Held::Tag(_), verdict) => respond(chosen, fields, is_head, verdict),
    }
}

/// Returns the response with `representation`, after the conditions.
fn respond(
    representation: &Representation,
    fields: &RequestFields<'_>,
    is_head: bool,
    verdict: Verdict,
) -> Response {
    match verdict {
        Verdict::Proceed => {}
        Verdict::NotModified => return response_304(representation.not_modified.clone()),
        Verdict::Failed => return refusal(StatusCode::PRECONDITION_FAILED),
    }
    let file = &representation.file;
    let part = part_of(fields, is_head, representation.validators(), file.size());
    let head = representation.fields.clone();
    partial_content::respond(crate::ANSWERED_BY, head, file.size(), &part, is_head, |range| {
        file.body(range)
    })
}

fn response_304(fields: FieldLines) -> Response {
    Response { fields, ..Response::new(crate::ANSWERED_BY, StatusCode::NOT_MODIFIED, Body::Empty) }
}

/// Returns a refusal with a short text.
pub(crate) fn refusal(status: StatusCode) -> Response {
    let mut response = Response::error(status);
    response.answered_by = crate::ANSWERED_BY;
    response
}
