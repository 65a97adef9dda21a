//! Looks at the directory of a project and writes a `kirin.toml` for what is there.
//!
//! [`find`] reads a few named files and never leaves the directory. [`config`] returns the text of
//! the configuration, and [`Found::report`] the text for the terminal.

mod command_port;
mod config;
mod container;
mod evidence;
mod find;
mod found;
mod generators;
mod package_json;
mod php;
mod private_paths;
mod procfile;
mod project;
mod psgi;
mod python;
mod ruby;
mod started_server;
mod static_site;

pub use config::config;
pub use evidence::Evidence;
pub use find::{InitError, find, find_with_sockets};
pub use found::{
    FilesOnly, Found, PhpPlan, Plan, PsgiPlan, PythonPlan, RubyPlan, ServerPlan, SitePlan,
    StaticFiles, Step,
};

#[cfg(test)]
mod doubling_tests;
