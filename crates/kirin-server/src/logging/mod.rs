//! Logs. A thread for each sink writes the lines, so that an event loop never waits for a log's
//! reader.

pub mod access_log;
pub mod access_logs;
pub mod conditions;
mod daemon_line;
pub mod directive;
pub mod escaping;
pub mod journald;
pub mod log_format;
pub mod log_sink;
pub mod log_time;
pub mod queued_writer;
pub mod request_value;
pub mod response_value;
pub mod syslog;
