//! Response heads over HTTP/2: the counterpart of `http1::response_writer`.

use http::StatusCode;
use kirin_h2::{Connection, FieldWriter};
use kirin_http::field_lines::FieldLines;
use kirin_http::response::Response;
use kirin_http::trailers::Trailers;

use crate::clock::Clock;
use crate::streams::response_fields::{
    WriteFields, ends_with_head, write_fields, write_response_fields,
};

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
        write_response_fields(response, is_head, clock, writer);
    });
}

impl WriteFields for FieldWriter<'_> {
    #[inline]
    fn field(&mut self, name: &[u8], value: &[u8]) {
        FieldWriter::field(self, name, value);
    }

    #[inline]
    fn content_length(&mut self, length: u64) {
        FieldWriter::content_length(self, length);
    }
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
