//! What happens to a worker when its response has been read, or when the client no longer reads it.

use std::future::poll_fn;
use std::sync::Arc;

use kirin_http::InRequest;

use crate::app::App;
use crate::ring::RingOwner;
use crate::worker::WorkerConnection;
use crate::worker_response::Afterwards;

/// Gives a worker back after its response: at once, or when it has cleaned up. Call this on an
/// event loop.
pub(crate) fn after_response(app: &Arc<App>, connection: WorkerConnection, afterwards: Afterwards) {
    match afterwards {
        Afterwards::Waits => app.release(connection),
        Afterwards::CleansUp => {
            let cleaned_up = clean_up(Arc::clone(app), connection);
            tokio::task::spawn_local(InRequest::of_current(cleaned_up));
        }
        Afterwards::Leaves => app.note_leaving(&connection.handle.process),
        Afterwards::EndsConnection => drop(connection),
    }
}

/// Waits until a worker has cleaned up, for as long as a request may take. A worker that leaves
/// instead says nothing more.
async fn clean_up(app: Arc<App>, mut connection: WorkerConnection) {
    app.deadlines.begin(&connection.handle);
    while connection.buffered().is_empty() {
        if !matches!(poll_fn(|context| connection.poll_fill(context)).await, Ok(1..)) {
            if connection.handle.is_killed() {
                app.log_slow_cleanup(connection.handle.pid);
            }
            return;
        }
    }
    if let Err(error) = Afterwards::CleansUp.check_left(connection.buffered()) {
        app.log_cut(&connection, &error);
        return;
    }
    connection.consume(1);
    if connection.handle.end() {
        app.release(connection);
    }
}

/// A worker whose response has no reader any more. The worker ends at its next write, or when its
/// deadline passes.
pub(crate) struct Abandoned<'a> {
    pub(crate) app: &'a App,
    pub(crate) connection: Option<WorkerConnection>,
}

impl Drop for Abandoned<'_> {
    fn drop(&mut self) {
        if let Some(connection) = &self.connection {
            self.app.deadlines.begin_to_return(&connection.handle);
        }
    }
}
