//! `kirin memcached`: the program with a store and its memcached port only, and with memcached's
//! own command line.

mod config;
mod option_names;
mod options;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use kirin_http::ListenAddress;
use kirin_memcache::VERSION;
use kirin_server::listener::ListenError;
use kirin_sockets::Inherited;

use crate::life::background::{BackgroundError, Foreground, is_background, start_in_background};
use crate::life::error::ProgramError;
use crate::life::launch::Launch;
use crate::life::{descriptor_limit, program};
use config::MemcachedConfigError;
use options::{HELP, MemcachedAction, Options};

/// The exit code of a command line that memcached would refuse (EX_USAGE, sysexits(3)).
const USAGE: u8 = 64;

/// The variable that names a file for the ports, as memcached has it for its tests (`-p -1`).
const PORT_FILE_VARIABLE: &str = "MEMCACHED_PORT_FILENAME";

/// Why the store does not start.
#[derive(Debug, thiserror::Error)]
enum MemcachedError {
    #[error(transparent)]
    Config(#[from] MemcachedConfigError),
    #[error(transparent)]
    Inherited(#[from] kirin_sockets::InheritError),
    #[error(transparent)]
    Background(#[from] BackgroundError),
    #[error("cannot go to the background: {0}")]
    Foreground(std::io::Error),
    #[error("{}", describe(.0))]
    Program(#[from] ProgramError),
}

/// Carries out a command line. Returns when the store has been told to stop.
pub fn run(words: Vec<String>, fail: fn(&str) -> ExitCode) -> ExitCode {
    let options = match options::parse(words) {
        Ok(MemcachedAction::Help) => return print(HELP),
        Ok(MemcachedAction::Version) => return print(&format!("memcached {VERSION}\n")),
        Ok(MemcachedAction::Run(options)) => options,
        Err(message) => {
            fail(&message);
            return ExitCode::from(USAGE);
        }
    };
    let in_background = is_background();
    let ended = if options.daemon && !in_background {
        start_in_background().map_err(MemcachedError::from)
    } else {
        serve(&options, in_background)
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let message = error.to_string();
            if in_background {
                Foreground::failed(&message);
            }
            fail(&message)
        }
    }
}

fn serve(options: &Options, in_background: bool) -> Result<(), MemcachedError> {
    let inherited = Inherited::take()?;
    let config = config::config(options)?;
    descriptor_limit::check(options.connection_limit);
    let foreground = if in_background {
        Some(Foreground::new().map_err(MemcachedError::Foreground)?)
    } else {
        None
    };
    let launch = Launch {
        inherited,
        served: None,
        config_file: None,
        listens_where_told: false,
        pid_file: options.pid_file.as_deref().map(config::absolute).transpose()?,
        loaded: None,
        memcached_port_file: std::env::var_os(PORT_FILE_VARIABLE).map(PathBuf::from),
        foreground,
    };
    Ok(program::run(config, None, launch)?)
}

/// Describes an error as memcached does, with an address as its options have it.
fn describe(error: &ProgramError) -> String {
    let (address, reason) = match error.listen_error() {
        Some(ListenError::InUse(address) | ListenError::DatagramsInUse(address)) => {
            (address, "it is in use by another process".into())
        }
        Some(ListenError::NotASocket(address)) => {
            (address, "it exists and is not a socket; it is left alone".into())
        }
        Some(ListenError::Io(address, error) | ListenError::Datagrams(address, error)) => {
            (address, error.to_string())
        }
        None => return error.to_string(),
    };
    match address {
        ListenAddress::Tcp(address) => format!("cannot listen on {address}: {reason}"),
        ListenAddress::Unix(path) => format!("cannot listen on {}: {reason}", path.display()),
    }
}

fn print(text: &str) -> ExitCode {
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
