//! The program from its first to its last moment: bind, start, serve, drain.
//!
//! This runs on the main thread. It supervises the event loops and serves nothing itself.

use std::path::Path;

use kirin_config::{Config, ConfigSource};
use kirin_workers::LoadedParent;

use crate::life::bind::bind;
use crate::life::descriptor_limit;
use crate::life::drain::drain;
use crate::life::error::ProgramError;
use crate::life::launch::Launch;
use crate::life::loaded_invocation;
use crate::life::run_directory::{INVOCATION, RunDirectory, WORKERS_SOCKET};
use crate::life::serve::serve;
use crate::life::signals::Signals;
use crate::life::start::{start, wait_until_ready};

/// Serves `config` until a signal ends it. It was read from `source`, if it was read from a text.
pub fn run(
    config: Config,
    source: Option<ConfigSource>,
    launch: Launch,
) -> Result<(), ProgramError> {
    run_in(config, source, launch, &RunDirectory::create()?)
}

/// Serves `config` until a signal or its only application ends it. The process `pid` has loaded
/// that application already.
pub fn run_loaded(
    config: Config,
    source: ConfigSource,
    directory: &Path,
    pid: u32,
    mut launch: Launch,
) -> Result<(), ProgramError> {
    let invocation = loaded_invocation::read(&directory.join(INVOCATION));
    launch.served = Some(loaded_invocation::served(invocation.as_ref(), &config));
    launch.loaded = Some(LoadedParent { pid, socket: directory.join(WORKERS_SOCKET), invocation });
    run_in(config, Some(source), launch, &RunDirectory::take_over(directory)?)
}

fn run_in(
    config: Config,
    source: Option<ConfigSource>,
    launch: Launch,
    run_directory: &RunDirectory,
) -> Result<(), ProgramError> {
    descriptor_limit::raise();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let ended = runtime.block_on(live(config, source, launch, run_directory));
    // Does not wait for loops that were told to end at once.
    runtime.shutdown_background();
    ended
}

async fn live(
    config: Config,
    source: Option<ConfigSource>,
    mut launch: Launch,
    run_directory: &RunDirectory,
) -> Result<(), ProgramError> {
    let mut signals = Signals::new()?;
    let bound = bind(config, source, &mut launch, run_directory)?;
    let mut started = start(bound, &launch, run_directory).await?;
    let ending = match wait_until_ready(&mut started, &launch, &mut signals).await {
        Ok(()) => serve(&mut started, &launch, run_directory, &mut signals).await,
        Err(ending) => ending,
    };
    drain(started, ending, run_directory, &mut signals).await
}
