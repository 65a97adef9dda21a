//! Work that blocks, on a thread of its own.

use std::io;
use std::thread;

use tokio::sync::oneshot;

/// Does `work` on a thread that is called `name`. It fails if there is no memory for a thread,
/// where [`tokio::task::spawn_blocking`] would panic.
pub async fn on_own_thread<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<T> {
    let (sender, result) = oneshot::channel();
    // Nobody waits any more if an upgrade is given up.
    thread::Builder::new().name(name.to_owned()).spawn(move || _ = sender.send(work()))?;
    result.await.map_err(|_| io::Error::other("a thread ended by a panic"))
}
