//! QPACK (RFC 9204) with the static table only: the compression of field sections.

mod decoder;
mod encoder;
mod static_table;

pub use decoder::{QpackError, decode};
pub use encoder::FieldWriter;
