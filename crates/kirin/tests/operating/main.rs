//! What an operator does and sees: commands, admin, logs, metrics, upgrades.
//!
//! Each module is a topic. All start the built program and talk to it as its clients do.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test fails by them")]

mod access_log;
mod access_logs;
mod acme;
mod acme_external_account;
mod acme_shared;
mod acme_tls_alpn;
mod admin;
mod admin_default;
mod advise;
mod block;
mod command_line;
mod debian_package;
mod import;
mod included_files;
mod init;
mod log_sum;
mod maintenance;
mod memcached_command_line;
mod memcached_looking_glass;
mod memcached_memory;
mod memcached_origin;
mod metrics;
mod origin_chaos;
mod origin_state;
mod outputs;
mod profile;
mod profile_python;
mod program_upgrade;
mod real_systemd;
mod reload;
mod secrets;
mod status_page;
mod systemd;
mod top;
mod traces;
mod user;
mod web_origin;
mod wrong_use;
