//! The syntax of single fields.

pub mod basic_credentials;
pub(crate) mod byte_scan;
pub mod cookies;
pub mod date;
pub mod field_list;
pub mod forwarded;
pub(crate) mod forwarded_element;
pub mod media_type;
pub mod proxy_fields;
pub mod token;
