#![forbid(unsafe_code)]
//! The program: the command line, the configuration, and the wiring of the other crates into a
//! running server.

mod admin;
mod check;
mod command_line;
mod import;
mod init;
mod life;
mod memcached;
mod new_file;
mod serve;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use kirin_config::ConfigSource;
use kirin_console::{command as console, print};
use kirin_sockets::Inherited;
use tikv_jemallocator::Jemalloc;

use command_line::{CommandLine, KirinCommand, Serve, visible};
use life::launch::Launch;
use life::launcher;
use life::program;
use life::{panics, program_log, run_directory, upgrade_channel};

/// With it a script's page takes 12 % less time than with the C library's allocator, and an idle
/// connection less memory (docs/store.md, bench/results/README.md).
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

/// Runs the program with the command line of the process. Returns the status to exit with.
pub fn main() -> ExitCode {
    let command_line = CommandLine::read();
    panics::log_and_count();
    let code = match program_log::start() {
        // The panic has been logged.
        Ok(()) => kirin_http::panics::catch(|| run(command_line)).unwrap_or(ExitCode::FAILURE),
        Err(message) => fail(&message),
    };
    program_log::flush();
    code
}

fn run(command_line: CommandLine) -> ExitCode {
    let result = match command_line.command {
        KirinCommand::Memcached { options } => return memcached::run(options, fail),
        KirinCommand::Serve(serve) if serve.print_config() => {
            serve.source().and_then(|source| print(source.text()))
        }
        KirinCommand::Serve(options) => with_inherited(|inherited| serve(&options, inherited)),
        KirinCommand::Import(arguments) => import::run(&arguments),
        KirinCommand::Init(arguments) => init::run(&arguments),
        KirinCommand::Check { config } => check::run(&config),
        KirinCommand::ServeLoaded { directory, app_parent, pid_file } => {
            with_inherited(|inherited| serve_loaded(inherited, &directory, app_parent, pid_file))
        }
        KirinCommand::Console(command) => console::run(command),
        KirinCommand::Launch { words } => return launcher::run(&words),
        KirinCommand::Completions { shell } => print(&visible::completions(shell)),
        KirinCommand::Manual { directory } => visible::write_manual(&directory)
            .map_err(|error| format!("{}: {error}", directory.display())),
        KirinCommand::ConfigReference => print(&kirin_config::reference::reference()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => fail(&message),
    }
}

fn fail(message: &str) -> ExitCode {
    program_log::print_line(&format!("kirin: {message}"));
    ExitCode::FAILURE
}

/// Runs the program with what it was started with. If it was to take over from another Kirin and
/// cannot, that one learns why.
fn with_inherited(serve: impl FnOnce(Inherited) -> Result<(), String>) -> Result<(), String> {
    let inherited = Inherited::take().map_err(|error| error.to_string())?;
    let predecessor = inherited.predecessor.as_ref().map(|sockets| sockets.channel.try_clone());
    let served = serve(inherited);
    if let (Err(reason), Some(Ok(predecessor))) = (&served, predecessor) {
        upgrade_channel::tell_failure(&predecessor, reason);
    }
    served
}

fn serve(options: &Serve, inherited: Inherited) -> Result<(), String> {
    let source = options.source()?;
    if let Some(found) = options.found() {
        tracing::info!("found {found}");
    }
    let config = kirin_config::read(&source).map_err(|error| error.to_string())?;
    let launch = Launch {
        inherited,
        served: Some(options.served()),
        config_file: options.config_file().map(Path::to_owned),
        listens_where_told: options.listens_where_told(),
        pid_file: options.pid_file().map(Path::to_owned),
        loaded: None,
        memcached_port_file: None,
        foreground: None,
    };
    program::run(config, Some(source), launch).map_err(|error| error.to_string())
}

fn serve_loaded(
    inherited: Inherited,
    directory: &Path,
    app_parent: u32,
    pid_file: Option<PathBuf>,
) -> Result<(), String> {
    let source = ConfigSource::read(&directory.join(run_directory::CONFIGURATION));
    let source = source.map_err(|error| error.to_string())?;
    let config = kirin_config::read(&source).map_err(|error| error.to_string())?;
    let launch = Launch {
        inherited,
        served: None,
        config_file: None,
        listens_where_told: false,
        pid_file,
        loaded: None,
        memcached_port_file: None,
        foreground: None,
    };
    program::run_loaded(config, source, directory, app_parent, launch)
        .map_err(|error| error.to_string())
}
