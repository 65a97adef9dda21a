//! The third part of the program's life: serve. The event loops accept clients. The main thread
//! carries out commands, renews certificates and removes expired items.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use kirin_http::panics::{catch, catch_in};
use kirin_observe::stage::Stage;
use kirin_sockets::Starter;
use kirin_store::{Now, Store};
use kirin_workers::AppError;
use tokio::sync::Notify;

use crate::life::apps::first_failure;
use crate::life::bind::Bound;
use crate::life::configured::Configured;
use crate::life::control::Control;
use crate::life::ending::ProgramEnding;
use crate::life::launch::Launch;
use crate::life::program_log;
use crate::life::reload::Reloading;
use crate::life::run_directory::RunDirectory;
use crate::life::signals::Signals;
use crate::life::start::Started;
use crate::life::upgrade::{self, Upgrade};
use crate::life::welcome;

/// The number of items that the sweep looks at in a second. It holds the lock of a shard for a part
/// of them at a time.
const SWEEP_ITEMS: usize = 20_000;

/// Serves until a signal, a successor or a failure ends it.
pub async fn serve(
    started: &mut Started,
    launch: &Launch,
    run_directory: &RunDirectory,
    signals: &mut Signals,
) -> ProgramEnding {
    let Started { bound, parts, admin, requests, retiring, snapshot, stage, loops, .. } = started;
    let _ = stage.send(Stage::Serve);
    parts.program.serves();
    announce(bound, launch);
    match bound.predecessor.take() {
        // Systemd listens to the predecessor alone until it ends. The predecessor tells it.
        Some(predecessor) => {
            if let Err(error) = predecessor.dismiss(Arc::clone(&parts.program)).await {
                tracing::warn!(%error, "serving nevertheless");
            }
            // Until now they were the predecessor's.
            if let Some(snapshot) = &snapshot {
                snapshot.own();
            }
            bound.sockets.get_mut().files().own();
        }
        None => bound.systemd.ready(),
    }
    if let Some(foreground) = &launch.foreground {
        foreground.ready();
    }
    bound.acme.get_mut().keep(parts.origin.clone());
    let sweeping = tokio::spawn(sweep(Arc::clone(&parts.store)));
    let upgrade = plan_upgrade(bound, launch);
    let control = Control {
        upgrade,
        reloading: Reloading {
            parts,
            admin,
            loops,
            configured: &bound.configured,
            sockets: &bound.sockets,
            acme: &bound.acme,
            launch,
            run_directory,
            retiring,
            has_other_apps: Notify::new(),
            told: &bound.told,
        },
        pid_file: bound.pid_file.as_ref(),
        renew_certificates: bound.acme.borrow().renew_now(),
        systemd: &bound.systemd,
    };
    let ending = loop {
        tokio::select! {
            ending = catch_in(control.carry_out_commands(signals, requests)) => match ending {
                Ok(ending) => break ending,
                Err(_) => tracing::error!(
                    "serving goes on, an upgrade or a reload that was going on does not"
                ),
            },
            error = failure(&bound.configured, &control.reloading.has_other_apps) => {
                break ProgramEnding::AppFailed(error);
            }
        }
    };
    sweeping.abort();
    ending
}

/// Says that Kirin serves, and where. In the place of another Kirin it says less.
fn announce(bound: &mut Bound, launch: &Launch) {
    let configured = bound.configured.get_mut();
    let is_first = bound.predecessor.is_none() && !configured.config.listeners.is_empty();
    if is_first && welcome::is_wanted() {
        let admin = bound.default_admin.as_deref();
        program_log::print_coloured(&welcome::text(configured, launch.served.as_ref(), admin));
        return;
    }
    for url in configured.urls() {
        tracing::info!("serving on {url}");
    }
}

/// Waits until an application fails for good.
async fn failure(configured: &RefCell<Configured>, has_other_apps: &Notify) -> AppError {
    loop {
        let apps = configured.borrow().apps.clone();
        tokio::select! {
            error = first_failure(&apps) => return error,
            () = has_other_apps.notified() => {}
        }
    }
}

/// Returns how another Kirin can take the place of this one, or why it cannot.
fn plan_upgrade(bound: &mut Bound, launch: &Launch) -> Result<Upgrade, String> {
    if bound.sockets.get_mut().starter() == Some(Starter::ServerStarter) {
        return Err("start_server would start a third program; send HUP to start_server".into());
    }
    let invocation = upgrade::invocation(launch)
        .ok_or("how this program was started is not known, or cannot be done again")?;
    let config = Arc::clone(&bound.configured.borrow().config);
    let loading = config.apps.iter().map(|app| app.start_limit).max().unwrap_or_default();
    Ok(Upgrade {
        invocation,
        notify: bound.systemd.socket().cloned(),
        limit: loading + upgrade::LIMIT,
    })
}

/// Removes expired items from the store, a bounded number each second.
async fn sweep(store: Arc<Store>) {
    let mut second = tokio::time::interval(Duration::from_secs(1));
    loop {
        second.tick().await;
        let now = Now::on_steady_clock();
        // A panic in one round does not end the others.
        let _ = catch(|| store.sweep(now, SWEEP_ITEMS));
    }
}
