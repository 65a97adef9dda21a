//! Response heads over HTTP/2: the counterpart of `http1::response_writer`.

use http::StatusCode;
use kirin_h2::{Connection, FieldWriter};
use kirin_http::body::Body;
use kirin_http::field_lines::FieldLines;
use kirin_http::response::Response;
use kirin_http::trailers::Trailers;

use crate::clock::Clock;

/// Returns whether nothing follows the head of `response`.
pub(super) fn ends_with_head(response: &Response, is_head: bool) -> bool {
    is_head || Response::is_bodiless_status(response.status) || response.body.length() == Some(0)
}

/// Writes the head of `response`.
#[inline]
pub(super) fn write_head<S>(
    engine: &mut Connection<S>,
    stream: u32,
    response: &Response,
    is_head: bool,
    clock: &Clock,
) {
    let ended = ends_with_head(response, is_head);
    engine.head(stream, response.status.as_u16(), ended, |writer| {
        write_fields(&response.fields, writer);
        if !response.fields.has_date() {
            writer.field(b"date", &clock.date());
        }
        let length = match response.body {
            // An empty body for HEAD does not say how long the body for GET would be (RFC 9110
            // section 8.6).
            Body::Empty if is_head => None,
            _ if Response::is_bodiless_status(response.status) => None,
            _ => response.body.length(),
        };
        if let Some(length) = length {
            writer.content_length(length);
        }
    });
}

/// Writes an informational response.
pub(super) fn write_informational<S>(
    engine: &mut Connection<S>,
    stream: u32,
    status: StatusCode,
    fields: &FieldLines,
) {
    engine.head(stream, status.as_u16(), false, |writer| write_fields(fields, writer));
}

/// Writes trailers, which end a response.
pub(super) fn write_trailers<S>(engine: &mut Connection<S>, stream: u32, trailers: Trailers) {
    engine.trailers(stream, |writer| {
        for (name, value) in &trailers.into_fields() {
            writer.field(name.as_str().as_bytes(), value.as_bytes());
        }
    });
}

#[inline]
fn write_fields(fields: &FieldLines, writer: &mut FieldWriter<'_>) {
    for (name, value) in fields.iter() {
        if !is_connection_specific(name) {
            writer.field(name, value);
        }
    }
}

/// Returns whether HTTP/2 does not have this field (RFC 9113 section 8.2.2). `TE` is a field of
/// requests only.
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
