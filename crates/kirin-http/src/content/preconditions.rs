//! Conditional requests (RFC 9110 section 13), evaluated in the order of its section 13.2.2. Pure.

use crate::date::parse_date;
use crate::entity_tag::Tag;
use crate::request_fields::RequestFields;

/// The validators of a representation (RFC 9110 section 8.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validators<'a> {
    /// The entity tag of the representation.
    pub entity_tag: Tag<'a>,
    /// The time of the last change, in whole seconds since the epoch.
    pub last_modified: Option<u64>,
}

/// The result of the conditions for GET and HEAD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Send the representation, or the requested part of it.
    Proceed,
    /// Send 304.
    NotModified,
    /// Send 412.
    Failed,
}

/// Evaluates steps 1 to 4 for a representation that exists.
pub fn evaluate(fields: &RequestFields<'_>, validators: Validators<'_>) -> Verdict {
    if let Some(list) = &fields.if_match {
        if !validators.entity_tag.strongly_in(list) {
            return Verdict::Failed;
        }
    } else if let (Some(date), Some(modified)) =
        (&fields.if_unmodified_since, validators.last_modified)
        && parse_date(date).is_some_and(|date| modified > date)
    {
        return Verdict::Failed;
    }
    if let Some(list) = &fields.if_none_match {
        if validators.entity_tag.weakly_in(list) {
            return Verdict::NotModified;
        }
    } else if let (Some(date), Some(modified)) =
        (&fields.if_modified_since, validators.last_modified)
        && parse_date(date).is_some_and(|date| modified <= date)
    {
        return Verdict::NotModified;
    }
    Verdict::Proceed
}

/// A representation that a response may have, with its validators.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'a, R> {
    /// The representation.
    pub representation: R,
    /// Its validators.
    pub validators: Validators<'a>,
}

/// Evaluates the conditions for all representations that the client accepts. `chosen` is the one
/// that the server prefers. Returns the representation for the response, and the result for it.
///
/// A client, or a cache in front of several clients, that has any of them need not get it again.
/// The tag of the 304 says which one it is (RFC 9111 section 4.3.4).
pub fn select<'a, R>(
    fields: &RequestFields<'_>,
    chosen: Candidate<'a, R>,
    others: impl Iterator<Item = Candidate<'a, R>>,
) -> (R, Verdict) {
    let verdict = evaluate(fields, chosen.validators);
    let mut selected = (chosen.representation, verdict);
    if verdict == Verdict::NotModified || !fields.compare_tags() {
        return selected;
    }
    for Candidate { representation, validators } in others {
        match (evaluate(fields, validators), selected.1) {
            (Verdict::NotModified, _) => return (representation, Verdict::NotModified),
            (Verdict::Proceed, Verdict::Failed) => selected = (representation, Verdict::Proceed),
            _ => {}
        }
    }
    selected
}

/// Evaluates step 5: whether `If-Range` allows a Range. Only exact equality counts, because
/// otherwise the client would join parts of two different files.
pub fn range_applies(if_range: Option<&[u8]>, validators: Validators<'_>) -> bool {
    let Some(value) = if_range else { return true };
    if value.starts_with(b"\"") || value.starts_with(b"W/") {
        return validators.entity_tag.is(value);
    }
    let date = parse_date(value);
    date.is_some() && date == validators.last_modified
}

#[cfg(test)]
#[path = "preconditions_tests.rs"]
mod tests;
