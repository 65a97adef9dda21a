//! What requests have in common whose connections carry many of them at once: HTTP/2 and HTTP/3.

pub(crate) mod far_side;
pub(crate) mod head;
pub(crate) mod kind;
pub(crate) mod response_fields;
