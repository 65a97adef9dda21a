//! Hosts, paths and queries (RFC 3986).

pub mod form;
pub mod host;
pub mod percent;
pub mod request_path;
