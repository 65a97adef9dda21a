//! Which part of a representation is sent, or whether it is sent at all (RFC 9110, 13 and 14).

pub mod byte_range;
pub mod entity_tag;
pub mod partial_content;
pub mod preconditions;
