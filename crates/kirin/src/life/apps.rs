//! The applications, as the program starts and watches them.

use std::sync::{Arc, Weak};

use kirin_workers::{App, AppConfig, AppError, LoadedParent};
use tokio::runtime::Handle;
use tokio::task::JoinSet;

use crate::life::configured;
use crate::life::launch::Launch;
use crate::life::run_directory::RunDirectory;

/// Starts an application, with its connections on `loops`.
pub fn start(
    app: &AppConfig,
    launch: &Launch,
    run_directory: &RunDirectory,
    loops: &[Handle],
) -> Result<Arc<App>, AppError> {
    App::start(app_config(app, launch.loaded.as_ref(), run_directory), loops.to_vec())
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

/// Stops an application that the configuration no longer has, when no request of a configuration
/// that had it is in progress any more, but after its own time limit for a request at the latest.
pub async fn retire(app: Arc<App>, in_use: Weak<()>) {
    let limit = app.request_deadline();
    configured::unused(&in_use, limit).await;
    app.stop(limit).await;
    tracing::info!(app = app.name(), "the workers of before have ended");
}
