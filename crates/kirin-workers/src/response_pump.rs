//! Response bodies that are too large or too slow to be read whole: a task reads from the worker into a bounded buffer, the
//! client's connection drains it. The worker is held only by what does not fit.

use crate::app::App;
use crate::exchange::after_response;
use crate::worker::WorkerConnection;
use crate::worker_response::{Afterwards, BodyDecoder, ProtocolError};
use bytes::{Bytes, BytesMut};
use kirin_http::{BodyStream, StreamError};
use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use tokio::task::AbortHandle;

/// Bytes read ahead of the client at most (and one read more).
const BUFFER_BYTES: usize = 1024 * 1024;

/// A body that a worker is still sending. Dropping it ends the worker's connection.
pub(crate) struct PumpedBody {
    shared: Rc<RefCell<Shared>>,
    length: Option<u64>,
    task: AbortHandle,
}

/// Between the task that reads and the connection that drains, on one loop.
#[derive(Default)]
struct Shared {
    data: BytesMut,
    end: Option<Result<(), StreamError>>,
    reader: Option<Waker>,
    drainer: Option<Waker>,
}

impl PumpedBody {
    /// Starts to read the rest of a body. `data` of it has been read. Must be called on a `LocalSet`.
    pub(crate) fn start(
        app: Arc<App>,
        connection: WorkerConnection,
        decoder: BodyDecoder,
        data: BytesMut,
        afterwards: Afterwards,
        length: Option<u64>,
    ) -> Self {
        let shared = Rc::new(RefCell::new(Shared { data, ..Shared::default() }));
        let task = tokio::task::spawn_local(pump(app, connection, decoder, afterwards, Rc::clone(&shared)))
            .abort_handle();
        Self { shared, length, task }
    }
}

impl BodyStream for PumpedBody {
    fn poll_chunk(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, StreamError>>> {
        let mut shared = self.shared.borrow_mut();
        if !shared.data.is_empty() {
            let data = shared.data.split().freeze();
            if let Some(reader) = shared.reader.take() {
                reader.wake();
            }
            return Poll::Ready(Some(Ok(data)));
        }
        match shared.end.take() {
            Some(Ok(())) => {
                shared.end = Some(Ok(()));
                Poll::Ready(None)
            }
            Some(Err(error)) => Poll::Ready(Some(Err(error))),
            None => {
                shared.drainer = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }

    fn length(&self) -> Option<u64> {
        self.length
    }
}

impl Drop for PumpedBody {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Shared {
    fn wake_drainer(&mut self) {
        if let Some(drainer) = self.drainer.take() {
            drainer.wake();
        }
    }
}

/// A worker whose response nobody reads any more. It ends at its next write; if it does not come to one, its deadline does.
struct Abandoned<'a> {
    app: &'a App,
    connection: Option<WorkerConnection>,
}

impl Drop for Abandoned<'_> {
    fn drop(&mut self) {
        if let Some(connection) = &self.connection {
            self.app.begin_deadline(&connection.handle);
        }
    }
}

async fn pump(
    app: Arc<App>,
    connection: WorkerConnection,
    mut decoder: BodyDecoder,
    afterwards: Afterwards,
    shared: Rc<RefCell<Shared>>,
) {
    let mut held = Abandoned { app: &app, connection: Some(connection) };
    let result = match &mut held.connection {
        Some(connection) => read_to_end(connection, &mut decoder, afterwards, &shared).await,
        None => Ok(()),
    };
    let Some(connection) = held.connection.take() else { return };
    match &result {
        Ok(()) => after_response(&app, connection, afterwards),
        Err(error) => app.log_cut(&connection, error),
    }
    let mut shared = shared.borrow_mut();
    shared.end = Some(result.map_err(|error| StreamError(error.to_string())));
    shared.wake_drainer();
}

async fn read_to_end(
    connection: &mut WorkerConnection,
    decoder: &mut BodyDecoder,
    afterwards: Afterwards,
    shared: &RefCell<Shared>,
) -> Result<(), ProtocolError> {
    loop {
        let buffered = connection.buffered();
        if !buffered.is_empty() {
            let mut shared = shared.borrow_mut();
            let used = decoder.decode(buffered, &mut shared.data)?;
            connection.consume(used);
            shared.wake_drainer();
            afterwards.check_left(connection.buffered())?;
        }
        if decoder.is_done() {
            return Ok(());
        }
        let count = poll_fn(|context| {
            ready!(poll_room(shared, context));
            connection.poll_fill(context)
        })
        .await;
        if !matches!(count, Ok(1..)) {
            return Err(ProtocolError::Truncated);
        }
    }
}

fn poll_room(shared: &RefCell<Shared>, context: &Context<'_>) -> Poll<()> {
    let mut shared = shared.borrow_mut();
    if shared.data.len() < BUFFER_BYTES {
        return Poll::Ready(());
    }
    shared.reader = Some(context.waker().clone());
    Poll::Pending
}
