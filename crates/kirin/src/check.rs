//! `kirin check`: whether a configuration could be served.

use std::path::Path;

use kirin_config::{Config, ConfigSource, Http3};
use kirin_console::print;
use kirin_http::ListenAddress;
use kirin_server::datagrams;

use crate::life::{program_log, read_again};
use crate::serve::listeners::http3_of;

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
    check_datagrams(&config)?;
    read_again::check_as_user(&config, path)?;
    print(&format!("{}: good\n", path.display()))
}

/// Says whether the UDP ports of HTTP/3 can be bound.
fn check_datagrams(config: &Config) -> Result<(), String> {
    for listener in &config.listeners {
        let http3 = http3_of(listener, None);
        if let ListenAddress::Tcp(address) = &listener.address
            && http3 != Http3::Off
            && let Err(error) = datagrams::check(*address)
        {
            if http3 == Http3::Required {
                return Err(error.to_string());
            }
            program_log::print_line(&format!("warning: {error}; HTTP/3 will be off there"));
        }
    }
    Ok(())
}
