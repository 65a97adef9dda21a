//! The command line.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use clap::{Args, Parser, Subcommand};
use kirin_config::target::{self, DEFAULT_ADDRESS, DEFAULT_WORKERS, Entrances};
use kirin_config::{ConfigSource, DEFAULT_FILE};
use kirin_console::command as console;
use kirin_observe::served::Served;

/// The default address with `--domain`.
const DEFAULT_HTTPS_ADDRESS: &str = "*:443";

/// One program in front of your application: it keeps every connection, serves what is in memory,
/// and hands only the requests that need code to the application's workers.
#[derive(Parser)]
#[command(
    name = "kirin",
    version,
    after_help = "Examples:
  kirin serve app.psgi               a PSGI application, and ./public beside it
  kirin serve ./public               a directory
  kirin serve http://127.0.0.1:3000  another HTTP server
  kirin serve --domain example.org app.psgi    to the world: https, with a certificate of Let's Encrypt
  kirin serve --config kirin.toml    whatever the file says
  kirin serve --print-config app.psgi > kirin.toml    a file to begin with"
)]
pub struct CommandLine {
    /// The command.
    #[command(subcommand)]
    pub command: KirinCommand,
}

/// A command.
#[derive(Subcommand)]
pub enum KirinCommand {
    /// Serve an application, a directory, or what a configuration file says
    Serve(Serve),
    /// Check a configuration file and say what is wrong with it
    Check {
        /// The file
        #[arg(long, short, default_value = DEFAULT_FILE)]
        config: PathBuf,
    },
    #[command(flatten)]
    Console(console::ConsoleCommand),
    /// Serve an application that was loaded by the program that became Kirin; see
    /// Plack::Handler::Kirin
    #[command(hide = true)]
    ServeLoaded {
        /// A directory made for this Kirin, with a configuration and the socket of the workers;
        /// Kirin removes it at the end
        #[arg(long)]
        directory: PathBuf,
        /// The child process that has loaded the application; its control channel is standard input
        #[arg(long, value_parser = clap::value_parser!(u32).range(2..))]
        app_parent: u32,
        /// Write the process id to this file, and remove the file at the end
        #[arg(long)]
        pid_file: Option<PathBuf>,
    },
    /// Start only the store, with memcached's own options (`kirin memcached -h` lists them)
    #[command(disable_help_flag = true)]
    Memcached {
        /// memcached's options
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        options: Vec<String>,
    },
    /// Start the new program of an upgrade
    #[command(hide = true, disable_help_flag = true)]
    Launch {
        /// The program and its arguments
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
        words: Vec<OsString>,
    },
    /// Print the configuration reference as Markdown
    #[command(hide = true)]
    ConfigReference,
}

/// The arguments of `kirin serve`.
#[derive(Args)]
pub struct Serve {
    /// A PSGI file, a directory or the address of a server, such as http://127.0.0.1:3000; default:
    /// the configuration file kirin.toml
    target: Option<String>,
    /// A configuration file
    #[arg(long, short, conflicts_with = "target")]
    config: Option<PathBuf>,
    /// Where to listen: HOST:PORT, PORT (on 127.0.0.1), *:PORT (all addresses) or unix:PATH
    /// [default: the sockets that start_server or systemd hands over, or else 127.0.0.1:8080; with
    /// --domain *:443]
    #[arg(long, short, requires = "target")]
    listen: Option<String>,
    /// Serve https with a certificate of Let's Encrypt for this name; you agree to its terms of
    /// service. Repeat the option for more names. Listens on *:443 for https and on *:80 for http
    #[arg(long, requires = "target")]
    domain: Vec<String>,
    /// With --domain: where to listen for HTTP. Port 80 of the names must lead there
    #[arg(long, requires = "domain", default_value = "*:80")]
    listen_http: String,
    /// With --domain: the e-mail address to which the authority may write
    #[arg(long, requires = "domain")]
    email: Option<String>,
    /// With --domain: another authority, by the https address of its ACME directory
    #[arg(long, requires = "domain")]
    acme_directory: Option<String>,
    /// Worker processes of the application
    #[arg(long, short, default_value_t = DEFAULT_WORKERS, requires = "target")]
    workers: usize,
    /// Write the process id to this file, and remove the file at the end
    #[arg(long)]
    pid_file: Option<PathBuf>,
    /// Print the configuration that the command line stands for, and end
    #[arg(long)]
    print_config: bool,
}

impl Serve {
    /// Returns the text of the configuration, and the directory of its relative paths.
    pub fn source(&self) -> Result<ConfigSource, String> {
        let Some(target) = &self.target else {
            let path = self.config.as_deref().unwrap_or(Path::new(DEFAULT_FILE));
            if self.config.is_none() && !path.exists() {
                return Err("nothing to serve: name a PSGI file, a directory, an http:// address or --config FILE (there is no ./kirin.toml)".into());
            }
            return ConfigSource::read(path).map_err(|error| error.to_string());
        };
        // A configuration that is printed is for a file, and for a Kirin in the background.
        let is_on_terminal = std::io::stderr().is_terminal() && !self.print_config;
        target::source(target, &self.entrances(), self.workers, is_on_terminal)
    }

    /// Returns what is served, for those who look for this Kirin later.
    pub fn served(&self) -> Served {
        let config = self.config.as_deref().unwrap_or(Path::new(DEFAULT_FILE));
        self.target.as_deref().map_or_else(|| Served::from_config(config), Served::from_target)
    }

    /// Returns the configuration file, if it is one that is served.
    pub fn config_file(&self) -> Option<&Path> {
        let config = || self.config.as_deref().unwrap_or(Path::new(DEFAULT_FILE));
        self.target.is_none().then(config)
    }

    fn entrances(&self) -> Entrances<'_> {
        let listen = self.listen.as_deref();
        if self.domain.is_empty() {
            return Entrances::Plain(listen.unwrap_or(DEFAULT_ADDRESS));
        }
        Entrances::Https {
            https: listen.unwrap_or(DEFAULT_HTTPS_ADDRESS),
            http: &self.listen_http,
            domains: &self.domain,
            email: self.email.as_deref(),
            directory: self.acme_directory.as_deref(),
        }
    }

    /// Returns whether the command line names no address. The inherited sockets decide then.
    pub fn listens_where_told(&self) -> bool {
        self.target.is_some() && self.listen.is_none() && self.domain.is_empty()
    }

    /// Returns the file for the process id.
    pub fn pid_file(&self) -> Option<&Path> {
        self.pid_file.as_deref()
    }

    /// Returns whether the configuration is only printed.
    pub fn print_config(&self) -> bool {
        self.print_config
    }
}
