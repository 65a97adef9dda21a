//! Applications and their workers.
//!
//! Each module is a topic. All start the built program and talk to it as its clients do.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test fails by them")]

mod app_background;
mod app_files;
mod apps;
mod cgi;
mod graceful_stop;
mod last_answers;
mod lifecycle;
mod load_errors;
mod preload;
mod psgi_extensions;
mod python;
mod python_software;
mod real_software;
mod response_failures;
mod restart_under_load;
mod ruby;
mod ruby_software;
mod ruby_workers;
mod server_name;
mod shares;
mod silent_workers;
mod slow_clients;
mod small_disk;
mod start_server;
mod suite;
mod trial;
mod upgrade;
mod worker_limits;
