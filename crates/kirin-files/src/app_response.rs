//! The client's response from an application's response and the file that it has handed back. It
//! has the fields of a file server, unless the application has set them itself.

use http::StatusCode;
use kirin_http::byte_range::{ByteRange, Part, part_of};
use kirin_http::date::parse_date;
use kirin_http::entity_tag::Tag;
use kirin_http::preconditions::{self, Validators, Verdict};
use kirin_http::{AnsweredBy, Body, FieldLines, RequestFields, Response, partial_content};

use crate::app_files::AppFile;
use crate::read_file::http_date;

/// The label of responses by applications: the file is the body of one.
pub const ANSWERED_BY_APP: AnsweredBy = AnsweredBy::new("app");

/// The fields of the application's response that decide which fields may be added.
#[derive(Default)]
struct AppResponseFields<'a> {
    entity_tag: Option<&'a [u8]>,
    last_modified: Option<&'a [u8]>,
    accept_ranges: Option<&'a [u8]>,
    /// `Content-Encoding`: the file has encoded bytes, which are one of several representations.
    is_encoded: bool,
    /// `Content-Range`: the file has a part.
    is_part: bool,
}

impl<'a> AppResponseFields<'a> {
    fn of(fields: &'a FieldLines) -> Self {
        let mut said = Self::default();
        for (name, value) in fields.iter() {
            match name.len() {
                4 if name.eq_ignore_ascii_case(b"etag") => said.entity_tag = Some(value),
                13 if name.eq_ignore_ascii_case(b"last-modified") => {
                    said.last_modified = Some(value)
                }
                13 if name.eq_ignore_ascii_case(b"accept-ranges") => {
                    said.accept_ranges = Some(value)
                }
                13 if name.eq_ignore_ascii_case(b"content-range") => said.is_part = true,
                16 if name.eq_ignore_ascii_case(b"content-encoding") => said.is_encoded = true,
                _ => {}
            }
        }
        said
    }
}

impl AppFile {
    /// Returns the complete file with the application's status and fields.
    pub fn whole(&self, status: StatusCode, fields: FieldLines, is_head: bool) -> Response {
        let size = self.file.size();
        let body = if is_head {
            Body::Withheld(size)
        } else {
            self.file.body(ByteRange { start: 0, length: size })
        };
        Response { fields, ..Response::new(ANSWERED_BY_APP, status, body) }
    }

    /// Returns the response to a GET or HEAD that the application has answered with 200 and
    /// `fields`.
    pub fn respond(
        &self,
        mut fields: FieldLines,
        request: &RequestFields<'_>,
        is_head: bool,
    ) -> Response {
        let said = AppResponseFields::of(&fields);
        if said.is_part {
            return self.whole(StatusCode::OK, fields, is_head);
        }
        // An entity tag from here would be the same for two codings of one file that happen to have
        // the same size.
        let adds_tag = said.entity_tag.is_none() && !said.is_encoded;
        let adds_date = self.file.last_modified().filter(|_| said.last_modified.is_none());
        let adds_ranges = said.accept_ranges.is_none() && !said.is_encoded;
        let gives_ranges = adds_ranges
            || said.accept_ranges.is_some_and(|unit| unit.eq_ignore_ascii_case(b"bytes"));
        let validators = Validators {
            entity_tag: match said.entity_tag {
                Some(tag) => Tag::parse(tag),
                None if adds_tag => self.entity_tag.as_tag(),
                None => Tag::Absent,
            },
            last_modified: match said.last_modified {
                Some(date) => parse_date(date),
                None => adds_date,
            },
        };
        let verdict = preconditions::evaluate(request, validators);
        let size = self.file.size();
        let part =
            if gives_ranges { part_of(request, is_head, validators, size) } else { Part::Whole };

        if adds_tag {
            fields.push("ETag", self.entity_tag.as_str());
        }
        if let Some(seconds) = adds_date {
            fields.push("Last-Modified", http_date(seconds));
        }
        match verdict {
            Verdict::Proceed => {}
            Verdict::NotModified => return not_modified(&fields),
            Verdict::Failed => return refusal(StatusCode::PRECONDITION_FAILED),
        }
        if adds_ranges {
            fields.push("Accept-Ranges", "bytes");
        }
        partial_content::respond(ANSWERED_BY_APP, fields, size, &part, is_head, |range| {
            self.file.body(range)
        })
    }
}

/// Returns a 304 with the application's fields, without those that describe the missing body.
fn not_modified(fields: &FieldLines) -> Response {
    let mut response = Response::new(ANSWERED_BY_APP, StatusCode::NOT_MODIFIED, Body::Empty);
    for (name, value) in fields.iter() {
        let of_body = [
            &b"content-type"[..],
            b"content-disposition",
            b"content-encoding",
            b"content-language",
        ];
        if !of_body.iter().any(|other| name.eq_ignore_ascii_case(other)) {
            // This was a field line before, so it is valid.
            let _ = response.fields.try_push(name, value);
        }
    }
    response
}

fn refusal(status: StatusCode) -> Response {
    let mut response = Response::error(status);
    response.answered_by = ANSWERED_BY_APP;
    response
}
