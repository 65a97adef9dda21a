//! The life of the program: start, serve, hand over to a successor, end.

pub mod loaded_invocation;
pub mod panics;
pub mod pid_file;
pub mod program;
pub mod program_log;
pub mod run_directory;
pub mod serving;
pub mod signals;
pub mod systemd;
pub mod upgrade;
