//! Logs of what the server does, written without waiting for their readers.

pub mod access_log;
pub mod queued_writer;
