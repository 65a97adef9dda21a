//! The command line.

mod serve;
mod unknown_words;
pub mod visible;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{Args, Command, Parser, Subcommand};
use clap_complete::Shell;
use kirin_config::DEFAULT_FILE;
use kirin_console::command as console;

pub use serve::Serve;

use crate::import::ImportArguments;
use crate::init::Init;

/// One program in front of your application: it keeps every connection, serves what is in memory,
/// and hands only the requests that need code to the application's workers.
#[derive(Parser)]
#[command(
    name = "kirin",
    version,
    after_help = "Examples:
  kirin serve app.psgi               a PSGI application, and ./public beside it
  kirin serve app.py, main:app       a Python application, WSGI or ASGI
  kirin serve config.ru              a Ruby application, with Rack
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
    /// Write a kirin.toml for the project of a directory
    #[command(after_help = "Examples:
  kirin init                looks at this directory, and writes ./kirin.toml
  kirin init --print shop   prints what it would write for ./shop")]
    Init(Init),
    /// Print the configuration of another server as a kirin.toml, and what became of each line
    #[command(after_help = "Examples:
  kirin import /etc/nginx/nginx.conf > kirin.toml
  kirin import nginx --into /etc/kirin 2> report.txt    /etc/nginx/nginx.conf
  kirin import Caddyfile > kirin.toml
It prints the configuration to standard output, and to standard error what was carried over, what
Kirin does by itself, and what it does not have.")]
    Import(ImportArguments),
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
    /// Print the script that completes command lines of kirin in a shell
    #[command(after_help = "Examples:
  kirin completions bash > ~/.local/share/bash-completion/completions/kirin
  kirin completions zsh > ~/.zfunc/_kirin        with fpath+=~/.zfunc before compinit in ~/.zshrc
  kirin completions fish > ~/.config/fish/completions/kirin.fish
The Debian package has them.")]
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Write the manual pages into a directory
    #[command(hide = true)]
    Manual {
        /// The directory
        directory: PathBuf,
    },
    /// Print the reference of all keys of a configuration file, as Markdown
    ConfigReference,
}

impl CommandLine {
    /// Reads the command line of this process. If it is wrong, this ends the program.
    pub fn read() -> Self {
        let read = Self::try_parse().unwrap_or_else(|error| unknown_words::explain(error).exit());
        if let KirinCommand::Serve(serve) = &read.command
            && let Err(message) = serve.check()
        {
            let mut command = Serve::augment_args(Command::new("kirin serve"));
            command.error(ErrorKind::ArgumentConflict, message).exit();
        }
        read
    }
}
