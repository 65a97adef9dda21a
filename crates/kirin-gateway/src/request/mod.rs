//! Requests that outlive the connection's buffer, and requests that come of a request.

pub mod answered_by;
pub mod kept_request;
pub mod subrequest;
