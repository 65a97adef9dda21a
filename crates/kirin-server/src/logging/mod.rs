//! Logs. A thread for each log writes the lines, so that an event loop never waits for a log's
//! reader.

pub mod access_log;
pub mod access_logs;
pub mod queued_writer;
