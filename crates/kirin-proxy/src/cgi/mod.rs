//! Servers that take requests as CGI's variables: FastCGI, SCGI and uwsgi (`kirin-cgi` encodes
//! them).
//!
//! The exchange is the one of HTTP/1 (`exchange`, `sending`, `response_body`), so that pace,
//! timeouts, retries and cuts are the same. Different are a request's bytes (`request`, and
//! `script_files` for which script it means), the response's head (`response`) and, with FastCGI,
//! that both directions are in records: `records` is beneath the socket, and what is read from it
//! is the response alone.

mod records;
mod request;
mod response;
mod script_files;

pub(crate) use kirin_cgi::fastcgi::{MAX_CONTENT_BYTES as MAX_RECORD_BYTES, stdin_header};
pub(crate) use records::{Records, in_records};
pub(crate) use request::CgiRequest;
pub(crate) use response::read_head;
pub(crate) use script_files::ScriptFiles;
