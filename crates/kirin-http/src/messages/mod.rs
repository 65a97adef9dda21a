//! Requests and responses: heads, fields, bodies and their framing (RFC 9110, RFC 9112).

pub mod body;
pub(crate) mod body_copy;
pub(crate) mod body_decoder;
pub(crate) mod body_with_trailers;
pub mod chunked;
pub mod field_lines;
pub mod informational;
pub mod observed_stream;
pub(crate) mod read_buffer;
pub(crate) mod received_response;
pub mod request;
pub mod request_body;
pub mod request_fields;
pub(crate) mod request_target;
pub mod response;
pub mod response_head;
pub mod trailers;
