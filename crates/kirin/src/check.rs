//! `kirin check`: whether a configuration could be served.

use std::path::Path;

use kirin_config::ConfigSource;
use kirin_console::print;

use crate::life::{program_log, read_again};

/// Checks a configuration file. The error is for the operator, and has all that is wrong.
pub fn run(path: &Path) -> Result<(), String> {
    let read = ConfigSource::read(path).and_then(|source| kirin_config::read(&source));
    let config = read.map_err(|error| error.to_string())?;
    for warning in &config.warnings {
        program_log::print_line(&warning.to_string());
    }
    for warning in kirin_config::weak_passwords(&config) {
        program_log::print_line(&format!("warning: {warning}"));
    }
    if !config.unwritable_logs.is_empty() {
        let errors: Vec<_> = config.unwritable_logs.iter().map(ToString::to_string).collect();
        return Err(errors.join("\n"));
    }
    read_again::check_as_user(&config, path)?;
    print(&format!("{}: good\n", path.display()))
}
