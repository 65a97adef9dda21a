#![forbid(unsafe_code)]
//! The configuration: what a user writes, checked into what the program runs.
//!
//! There are two layers. The `…Section` types are the keys of a file: a key is declared once, with
//! its type, its default and its documentation. [`read`] checks them and makes the values that
//! configure the other crates; those types belong to the crates.

mod access;
mod access_log;
mod acme;
mod acme_challenges;
mod acme_external_account;
mod acme_shared_key;
mod acme_values;
mod admin;
mod app;
pub mod app_target;
mod auth_request;
mod balancing;
mod cache;
mod cgi;
mod check;
mod comparison;
mod compress;
mod conditions;
mod default;
pub mod difference;
mod document;
mod fastcgi;
mod file;
mod file_pattern;
mod files;
mod follow_links;
mod forwarded;
mod health_check;
mod hidden_passwords;
mod hidden_values;
mod include;
mod inherit;
mod joined_document;
mod listener;
mod load;
mod log_file;
mod log_target;
mod lua;
mod mirror;
mod name;
mod or_false;
pub mod partners;
mod peers;
mod place;
mod placement;
mod preload;
mod redirect_circles;
mod redirect_tables;
pub mod reference;
pub mod reload_class;
mod request_limits;
mod route;
mod routes;
mod rules;
mod schema;
mod secret_file;
mod site;
mod source;
mod source_file;
mod store;
mod store_origin;
mod suggestion;
pub mod target;
mod text_file;
mod tls;
mod traces;
mod trial;
mod unique;
mod unit_suggestion;
mod units;
mod upstream;
mod upstream_server;
mod value_text;
mod variable_types;
mod variables;
mod warnings;
mod word;
mod wording;
mod written;

pub use access_log::{AccessLogConfig, DEFAULT_LOG_FORMAT};
pub use acme_values::{acme_directory, acme_domain, acme_email};
pub use check::{Config, read, read_after, read_command_addresses};
pub use file_pattern::matching_files;
pub use joined_document::toml_table;
pub use listener::ListenerConfig;
pub use log_target::LogTarget;
pub use peers::{NetworkError, parse_network};
pub use source::{ConfigError, ConfigErrors, ConfigSource};
pub use source_file::SourceFile;
pub use store::StoreSetup;
pub use text_file::read_regular;
pub use tls::{Http3, ListenerTls};
pub use units::{Milliseconds, Seconds};
pub use variables::literal;
pub use warnings::weak_passwords;

/// The configuration file of commands that are not told another one.
pub const DEFAULT_FILE: &str = "kirin.toml";
