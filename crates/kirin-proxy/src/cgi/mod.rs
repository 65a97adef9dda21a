//! Servers that take requests as CGI meta-variables: FastCGI, SCGI and uwsgi. `kirin-cgi` encodes
//! them.
//!
//! The exchange is that of HTTP/1 (`exchange`, `sending`, `response_body`), with the same timeouts
//! and retries. These files contain the differences:
//!
//! - `request` encodes a request, and `script_files` finds its script.
//! - `response` parses a response head.
//! - `records` takes a FastCGI response out of its records. It sits below the socket, so that an
//!   exchange reads only the response.

mod records;
mod request;
mod response;
mod script_files;

pub(crate) use kirin_cgi::fastcgi::{MAX_CONTENT_BYTES as MAX_RECORD_BYTES, stdin_header};
pub(crate) use records::{Records, in_records};
pub(crate) use request::CgiRequest;
pub(crate) use response::read_head;
pub(crate) use script_files::ScriptFiles;
