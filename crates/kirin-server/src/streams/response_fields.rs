//! What the heads of responses over HTTP/2 and HTTP/3 have in common.

use kirin_http::body::Body;
use kirin_http::field_lines::FieldLines;
use kirin_http::response::Response;

use crate::clock::Clock;

/// Writes the fields of a section.
pub(crate) trait WriteFields {
    /// Writes one field.
    fn field(&mut self, name: &[u8], value: &[u8]);
    /// Writes `content-length`.
    fn content_length(&mut self, length: u64);
}

/// Returns whether nothing follows the head of `response`.
pub(crate) fn ends_with_head(response: &Response, is_head: bool) -> bool {
    is_head || Response::is_bodiless_status(response.status) || response.body.length() == Some(0)
}

/// Writes the fields of the head of `response`.
#[inline]
pub(crate) fn write_response_fields(
    response: &Response,
    is_head: bool,
    clock: &Clock,
    writer: &mut impl WriteFields,
) {
    write_fields(&response.fields, writer);
    if !response.fields.has_date() {
        writer.field(b"date", &clock.date());
    }
    let length = match response.body {
        // An empty body for HEAD does not say how long the body for GET would be (RFC 9110 section
        // 8.6).
        Body::Empty if is_head => None,
        _ if Response::is_bodiless_status(response.status) => None,
        _ => response.body.length(),
    };
    if let Some(length) = length {
        writer.content_length(length);
    }
}

/// Writes these fields, without those that belong to a connection of HTTP/1.
#[inline]
pub(crate) fn write_fields(fields: &FieldLines, writer: &mut impl WriteFields) {
    for (name, value) in fields.iter() {
        if !is_connection_specific(name) {
            writer.field(name, value);
        }
    }
}

/// Returns whether HTTP/2 and HTTP/3 do not have this field (RFC 9113 section 8.2.2, RFC 9114
/// section 4.2). `TE` is a field of requests only.
#[inline]
fn is_connection_specific(name: &[u8]) -> bool {
    let names: &[&[u8]] = match name.len() {
        2 => &[b"te"],
        7 => &[b"upgrade"],
        10 => &[b"connection", b"keep-alive"],
        16 => &[b"proxy-connection"],
        17 => &[b"transfer-encoding"],
        _ => return false,
    };
    names.iter().any(|other| name.eq_ignore_ascii_case(other))
}
