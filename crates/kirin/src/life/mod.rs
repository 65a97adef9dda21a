//! The life of the program: bind, start, serve, drain. `program.rs` goes through the four in this
//! order.

mod apps;
mod backends;
pub mod background;
mod bind;
mod configured;
mod control;
pub mod control_request;
pub mod descriptor_limit;
mod drain;
mod ending;
pub mod error;
pub mod launch;
pub mod launcher;
mod loaded_invocation;
mod log_line;
mod memcached_pause;
mod new_process;
mod own_thread;
pub mod panics;
mod parts;
mod pid_file;
mod port_file;
mod predecessor;
pub mod program;
pub mod program_log;
pub mod read_again;
mod reload;
pub mod run_directory;
mod serve;
mod signals;
mod spool_space;
mod start;
mod store_giving;
mod systemd;
mod upgrade;
pub mod upgrade_channel;
