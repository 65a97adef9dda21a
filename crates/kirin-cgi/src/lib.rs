#![forbid(unsafe_code)]
//! Requests as CGI meta-variables (RFC 3875), and the protocols that carry them: SCGI, FastCGI and
//! uwsgi. No I/O.
//!
//! [`RequestBlock`] is a request in the form of SCGI, which application workers get
//! (`kirin-workers`). The encodings for other servers are made from it (`kirin-proxy`).

mod error_output;
pub mod fastcgi;
mod meta_variables;
mod request_block;
mod response_head;
mod same_name;
mod script;
pub mod uwsgi;

pub use error_output::ErrorOutput;
pub use meta_variables::{MetaVariables, User, is_given};
pub use request_block::{NulInPath, RequestBlock};
pub use response_head::{BadHead, parse_head};
pub use script::CgiScript;
