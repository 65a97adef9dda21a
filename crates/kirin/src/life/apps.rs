//! The applications, as the program starts and watches them.

use std::sync::Arc;

use kirin_workers::{App, AppConfig, AppError, LoadedParent};
use tokio::runtime::Handle;
use tokio::task::JoinSet;

use crate::config::check::{AppSite, Site};
use crate::life::run_directory::RunDirectory;

/// Starts all applications of `site`, with their connections on `loops`.
pub fn start(
    site: &Site,
    loaded: Option<&LoadedParent>,
    run_directory: &RunDirectory,
    loops: Vec<Handle>,
) -> Result<Vec<Arc<App>>, AppError> {
    let start = |app| {
        let config = AppConfig { loaded: loaded.cloned(), ..app_config(app, run_directory) };
        App::start(config, loops.clone())
    };
    site.apps.iter().map(start).collect()
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

fn app_config(app: &AppSite, run_directory: &RunDirectory) -> AppConfig {
    let mut env = app.env.clone();
    env.entry("KIRIN_STORE".into())
        .or_insert_with(|| format!("unix:{}", run_directory.store_socket().display()));
    AppConfig {
        directory: Some(app.directory.clone()),
        run_directory: Some(run_directory.path().to_owned()),
        workers: app.workers,
        preload: app.preload,
        env: env.into_iter().collect(),
        queue_length: app.queue,
        queue_wait: app.queue_wait,
        request_deadline: app.deadline,
        start_limit: app.start_limit,
        max_requests: (app.max_requests > 0).then_some(app.max_requests),
        max_age: app.max_age,
        max_memory_bytes: app.max_memory_bytes,
        body_limit_bytes: app.body_limit_bytes,
        sendfile_roots: app.sendfile.clone(),
        ..AppConfig::new(&app.name, &app.load)
    }
}
