//! The last part of the program's life: drain. Responses in progress are finished, applications
//! end, and the store is saved.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kirin_memcache::MemcachedServer;
use kirin_observe::stage::Stage;
use kirin_server::ConnectionCount;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::life::ending::ProgramEnding;
use crate::life::error::ProgramError;
use crate::life::run_directory::RunDirectory;
use crate::life::signals::Signals;
use crate::life::start::Started;
use crate::life::upgrade::Succession;
use crate::life::upgrade_channel::{Message, UpgradeChannel};
use crate::serve::handed::{ConnectionSender, SuccessorSocket, send_memcached};

/// How long the end waits for an access log that takes no lines, such as a FIFO without a reader,
/// and for a collector of traces.
const LAST_LINES: Duration = Duration::from_secs(1);

/// How long the end waits until the origin knows that this machine has left.
const LEAVING: Duration = Duration::from_secs(1);

/// The time between two looks whether the event loops have ended.
const END_INTERVAL: Duration = Duration::from_millis(2);

/// Ends the program, and returns the error that it ends with.
pub async fn drain(
    started: Started,
    ending: ProgramEnding,
    run_directory: &RunDirectory,
    signals: &mut Signals,
) -> Result<(), ProgramError> {
    let Started { mut bound, parts, snapshot, successor, stage, loops, retiring, .. } = started;
    let store = parts.store;
    let traces = bound.configured.get_mut().traces.take();
    let mut apps = bound.configured.get_mut().apps.clone();
    apps.extend(retiring.take());
    let threads = loops.into_iter().map(|event_loop| event_loop.thread).collect();
    let mut handing = None;
    match &ending {
        ProgramEnding::NotStarted(_) | ProgramEnding::StoppedAtStart => {}
        ProgramEnding::Stopped(_) | ProgramEnding::AppFailed(_) => bound.systemd.stopping(),
        ProgramEnding::Succeeded(Succession { pid, connections, .. }) => {
            let store_socket = run_directory.store_socket();
            handing = hand_over_memcached(&parts.memcached, connections, store_socket);
            successor.send_replace(Some(Arc::clone(connections)));
            bound.systemd.main_process_is(*pid);
            // The successor writes a snapshot of its own, and serves on the same sockets.
            if let Some(snapshot) = &snapshot {
                snapshot.disown();
            }
            bound.sockets.get_mut().files().disown();
            bound.has_successor.send_replace(true);
        }
    }
    if let Some(path) = &bound.default_admin {
        // The next program can have it before the last response of this one is sent.
        bound.sockets.get_mut().files().remove(path);
    }
    bound.sockets.get_mut().drop_held();
    let mut limit = ending.drain_limit();
    let _ = stage.send(match ending {
        ProgramEnding::NotStarted(_) | ProgramEnding::StoppedAtStart => Stage::GiveUp,
        ProgramEnding::Succeeded(_) => Stage::HandOver(limit),
        ProgramEnding::Stopped(_) | ProgramEnding::AppFailed(_) => Stage::Drain(limit),
    });
    // The loops are told first. Whoever waits for this line then finds them stopping.
    ending.log();
    let (ending, giving) = match ending {
        ProgramEnding::Succeeded(Succession { channel, giving, pause, .. }) => {
            tokio::spawn(tell_successor(channel, Arc::clone(&parts.connections)));
            // Public clients leave now. Those of applications go on.
            drop(pause);
            let giving = giving.go_on();
            if let Err(error) = &giving {
                tracing::error!(%error, "what the last requests change in the store is lost");
            }
            (Ok(()), giving.ok())
        }
        other => (other.into_result(), None),
    };
    tokio::select! {
        all_ended = join_all(threads) => {
            if !all_ended {
                tracing::error!("an event loop ended by a panic");
            }
        }
        // A second signal does not wait for responses in progress.
        _ = signals.stop() => {
            tracing::warn!("stopping at once");
            limit = Duration::ZERO;
        }
    }
    if let Some((end, handing)) = handing {
        // No loop has a client any more.
        drop(end);
        // A new program that hangs does not keep this one.
        _ = tokio::time::timeout(limit, handing).await;
    }
    // Loops that have not ended may have some.
    kirin_cgi_programs::kill_all();
    for app in &apps {
        app.stop(limit).await;
    }
    if let Some(snapshot) = &snapshot
        && let Err(error) = snapshot.save(&store)
    {
        tracing::error!(%error, "snapshot not written; the one before is kept");
    }
    if let Some(traces) = traces {
        traces.stop(LAST_LINES);
    }
    // The calls block. There is nothing else to do any more.
    if let Some(giving) = giving {
        giving.end();
    }
    if let Some(machines) = &parts.machines {
        // The others forget it in any case.
        _ = tokio::time::timeout(LEAVING, machines.left()).await;
    }
    parts.given_up.wait();
    bound.pid_file = None;
    for log in bound.configured.borrow().logs.values() {
        log.flush(LAST_LINES);
    }
    ending
}

/// Has memcached clients go to the program that serves now, each when it is between two commands.
/// Returns what ends that.
fn hand_over_memcached(
    server: &MemcachedServer,
    connections: &SuccessorSocket,
    store_socket: PathBuf,
) -> Option<(oneshot::Sender<()>, JoinHandle<()>)> {
    match ConnectionSender::new(connections) {
        Ok(sender) => {
            let (clients, handed) = mpsc::unbounded_channel();
            let (end, ends) = oneshot::channel();
            server.hand_over(clients);
            Some((end, tokio::spawn(send_memcached(handed, sender, store_socket, ends))))
        }
        Err(error) => {
            tracing::warn!(%error, "memcached clients have to connect again");
            None
        }
    }
}

/// Tells the program that serves now how many connections are still here, once a second.
async fn tell_successor(mut channel: UpgradeChannel, connections: Arc<ConnectionCount>) {
    let mut second = tokio::time::interval(Duration::from_secs(1));
    loop {
        second.tick().await;
        let message = Message::Draining { connections: connections.open() as u64 };
        if channel.send(&message).await.is_err() {
            return;
        }
    }
}

/// Waits for the end of all threads. Returns whether all have ended without a panic.
async fn join_all(threads: Vec<std::thread::JoinHandle<()>>) -> bool {
    // A thread that waits for them would be simpler. There may be no memory for one.
    while !threads.iter().all(std::thread::JoinHandle::is_finished) {
        tokio::time::sleep(END_INTERVAL).await;
    }
    threads.into_iter().all(|thread| thread.join().is_ok())
}
