//! The applications, as the program starts and watches them.

use std::sync::Arc;

use kirin_config::Config;
use kirin_workers::{App, AppConfig, AppError, LoadedParent};
use tokio::runtime::Handle;
use tokio::task::JoinSet;

use crate::life::run_directory::RunDirectory;

/// Starts all applications of `config`, with their connections on `loops`.
pub fn start(
    config: &Config,
    loaded: Option<&LoadedParent>,
    run_directory: &RunDirectory,
    loops: Vec<Handle>,
) -> Result<Vec<Arc<App>>, AppError> {
    let start = |app| App::start(app_config(app, loaded, run_directory), loops.clone());
    config.apps.iter().map(start).collect()
}

/// Waits until every application is loaded. Fails with the first that cannot be loaded.
pub async fn all_ready(apps: &[Arc<App>]) -> Result<(), AppError> {
    for app in apps {
        app.ready().await?;
    }
    Ok(())
}

/// Waits until an application fails for good. That is rare, since most are started again.
pub async fn first_failure(apps: &[Arc<App>]) -> AppError {
    let mut failures = JoinSet::new();
    for app in apps {
        let app = Arc::clone(app);
        failures.spawn(async move { app.failed().await });
    }
    match failures.join_next().await {
        Some(Ok(error)) => error,
        _ => std::future::pending().await,
    }
}

/// Returns the configuration of `app` with what only the running program knows.
fn app_config(
    app: &AppConfig,
    loaded: Option<&LoadedParent>,
    run_directory: &RunDirectory,
) -> AppConfig {
    let mut app = app.clone();
    app.loaded = loaded.cloned();
    app.run_directory = Some(run_directory.path().to_owned());
    if !app.env.iter().any(|(name, _)| name == "KIRIN_STORE") {
        let socket = format!("unix:{}", run_directory.store_socket().display());
        app.env.push(("KIRIN_STORE".into(), socket));
    }
    app
}
