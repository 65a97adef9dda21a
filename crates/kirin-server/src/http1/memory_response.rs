//! Responses whose body is in memory. They are written together, without waiting.

use kirin_http::body::Body;
use kirin_http::response::Response;

use crate::http1::output::Output;
use crate::http1::response_writer::{BodyFraming, Http1Exchange, write_head};
use crate::server::Server;

/// Returns whether a body is in memory.
pub(super) fn is_in_memory(body: &Body) -> bool {
    matches!(body, Body::Empty | Body::Bytes(_) | Body::Segments(_) | Body::Withheld(_))
}

/// Appends a response whose body is in memory. Returns the number of bytes of the body.
pub(super) fn write_response<H>(
    server: &Server<H>,
    output: &mut Output,
    response: &Response,
    exchange: &mut Http1Exchange,
) -> u64 {
    let clock = server.clock();
    let framing = output.text(|text| write_head(response, exchange, clock, text));
    let before = output.len();
    if framing != BodyFraming::Nothing {
        match &response.body {
            Body::Bytes(bytes) => output.bytes(bytes),
            Body::Segments(segments) => segments.iter().for_each(|segment| output.bytes(segment)),
            Body::Empty | Body::Withheld(_) | Body::File(_) | Body::Stream(_) | Body::Tunnel(_) => {
            }
        }
    }
    (output.len() - before) as u64
}
