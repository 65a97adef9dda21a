#![forbid(unsafe_code)]
//! Requests as CGI meta-variables (RFC 3875), and the protocols that carry them: SCGI, FastCGI and
//! uwsgi.
//!
//! Bytes in, bytes out. [`RequestBlock`] is a request as SCGI has it, which application workers get
//! (`kirin-workers`); the other encodings are made from it, for servers of others (`kirin-proxy`).

pub mod fastcgi;
mod meta_variables;
mod request_block;
mod response_head;
mod same_name;
mod script;
pub mod uwsgi;

pub use meta_variables::MetaVariables;
pub use request_block::{NulInPath, RequestBlock};
pub use response_head::{BadHead, parse_head};
pub use script::Script;
