//! What requests have in common whose connections carry many of them at once: HTTP/2 and HTTP/3.

pub(crate) mod body_pace;
pub(crate) mod exchange;
pub(crate) mod far_side;
pub(crate) mod head;
pub(crate) mod held_bytes;
pub(crate) mod kind;
pub(crate) mod response_fields;
pub(crate) mod stream_task;
pub(crate) mod trailers;

/// The most requests of a connection at the same time.
pub(crate) const STREAMS: u32 = 128;

/// Body bytes of one stream, and of all streams, that a client may send before they are read.
pub(crate) const STREAM_WINDOW_BYTES: u32 = 128 * 1024;
pub(crate) const CONNECTION_WINDOW_BYTES: u32 = 512 * 1024;
