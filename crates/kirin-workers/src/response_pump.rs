//! Response bodies that are too large or too slow to be read at once.
//!
//! A task reads from the worker ahead of the client, and the client's connection takes what has
//! been read. If the client is slow, the bytes go to a file. So a slow client holds a worker only
//! when the file may not grow.

use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use http::header::HeaderName;
use kirin_client_bytes::NoRoom;
use kirin_http::{BodyDecoder, BodyStream, InRequest, OpenStep, StreamError, Trailers};
use tokio::task::AbortHandle;
use tokio::time::timeout;

use crate::after_response::{Abandoned, after_response};
use crate::app::App;
use crate::read_ahead::ReadAhead;
use crate::worker::WorkerConnection;
use crate::worker_response::{Afterwards, ProtocolError};

/// A client that has made no room for this long is slow. Faster clients do not need a file.
const SLOW_AFTER: Duration = Duration::from_millis(200);

/// A body of which a part has been read.
pub(crate) struct UnreadBody {
    pub(crate) decoder: BodyDecoder,
    /// The length of all of it, if it is known.
    pub(crate) length: Option<u64>,
    /// What has been read.
    pub(crate) ahead: ReadAhead,
    /// Fields that must not be trailers, if those behind the body go on to the client.
    pub(crate) excluded_trailers: Option<Vec<HeaderName>>,
}

/// A body that a worker is still sending. Dropping it ends the worker's connection.
pub(crate) struct PumpedBody {
    shared: Rc<RefCell<Shared>>,
    length: Option<u64>,
    excluded_trailers: Option<Vec<HeaderName>>,
    task: AbortHandle,
}

/// The state that the reading task and the client's connection share, on one event loop.
struct Shared {
    ahead: ReadAhead,
    end: Option<Result<(), StreamError>>,
    trailers: Option<Trailers>,
    reader: Option<Waker>,
    drainer: Option<Waker>,
}

impl PumpedBody {
    /// Starts to read the rest of a body. Call this on an event loop.
    pub(crate) fn start(
        app: Arc<App>,
        connection: WorkerConnection,
        body: UnreadBody,
        afterwards: Afterwards,
        step: OpenStep,
    ) -> Self {
        let UnreadBody { decoder, length, ahead, excluded_trailers } = body;
        let (end, trailers, reader, drainer) = (None, None, None, None);
        let shared = Rc::new(RefCell::new(Shared { ahead, end, trailers, reader, drainer }));
        let task = tokio::task::spawn_local(InRequest::of_current(pump(
            app,
            connection,
            decoder,
            afterwards,
            Rc::clone(&shared),
            step,
        )))
        .abort_handle();
        Self { shared, length, excluded_trailers, task }
    }
}

impl BodyStream for PumpedBody {
    fn poll_chunk(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, StreamError>>> {
        let mut shared = self.shared.borrow_mut();
        let data = match shared.ahead.take() {
            Ok(data) => data,
            Err(error) => {
                return Poll::Ready(Some(Err(StreamError(format!("spool file: {error}")))));
            }
        };
        if !data.is_empty() {
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

    fn may_have_trailers(&self) -> bool {
        self.excluded_trailers.is_some()
    }

    fn take_trailers(&mut self) -> Option<Trailers> {
        let excluded = self.excluded_trailers.as_ref()?;
        let mut trailers = self.shared.borrow_mut().trailers.take()?;
        trailers.remove(excluded);
        Some(trailers)
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

async fn pump(
    app: Arc<App>,
    connection: WorkerConnection,
    mut decoder: BodyDecoder,
    afterwards: Afterwards,
    shared: Rc<RefCell<Shared>>,
    step: OpenStep,
) {
    let mut held = Abandoned { app: &app, connection: Some(connection) };
    let result = match &mut held.connection {
        Some(connection) => read_to_end(&app, connection, &mut decoder, afterwards, &shared).await,
        None => Ok(()),
    };
    drop(step);
    let Some(connection) = held.connection.take() else { return };
    match &result {
        Ok(()) => after_response(&app, connection, afterwards),
        Err(error) => app.log_cut(&connection, error),
    }
    let mut shared = shared.borrow_mut();
    shared.trailers = decoder.take_trailers();
    shared.end = Some(result.map_err(|error| StreamError(error.to_string())));
    shared.wake_drainer();
}

async fn read_to_end(
    app: &App,
    connection: &mut WorkerConnection,
    decoder: &mut BodyDecoder,
    afterwards: Afterwards,
    shared: &RefCell<Shared>,
) -> Result<(), ProtocolError> {
    loop {
        let buffered = connection.buffered();
        if !buffered.is_empty() {
            let mut shared = shared.borrow_mut();
            let used = decoder.decode(buffered, shared.ahead.memory())?;
            connection.consume(used);
            shared.wake_drainer();
            afterwards.check_left(connection.buffered())?;
        }
        if decoder.is_done() {
            return Ok(());
        }
        make_room(app, shared).await?;
        if !matches!(poll_fn(|context| connection.poll_fill(context)).await, Ok(1..)) {
            return Err(ProtocolError::Truncated);
        }
    }
}

/// Waits until there is room in memory: either the client has taken bytes, or the client is slow
/// and the bytes have gone to the file.
///
/// A client for which too many bytes are held already is cut off, because others need its worker.
async fn make_room(app: &App, shared: &RefCell<Shared>) -> Result<(), NoRoom> {
    let is_counted = shared.borrow_mut().ahead.count();
    if is_counted && !shared.borrow().ahead.is_full() {
        return Ok(());
    }
    let room = poll_fn(|context| poll_room(shared, context));
    // A client that has not caught up with the file is still slow.
    let is_slow = !is_counted || shared.borrow().ahead.spilled_bytes() > 0;
    if !is_slow && timeout(SLOW_AFTER, room).await.is_ok() {
        return Ok(());
    }
    let spilled = spill(app, &mut shared.borrow_mut().ahead)?;
    if !spilled {
        poll_fn(|context| poll_room(shared, context)).await;
    }
    Ok(())
}

/// Makes room by the file. Returns false if the file is full or cannot be written.
fn spill(app: &App, ahead: &mut ReadAhead) -> Result<bool, NoRoom> {
    Ok(ahead.spilled_bytes() < app.config().response_spool_bytes && app.spill_response(ahead)?)
}

fn poll_room(shared: &RefCell<Shared>, context: &Context<'_>) -> Poll<()> {
    let mut shared = shared.borrow_mut();
    if !shared.ahead.is_full() {
        return Poll::Ready(());
    }
    shared.reader = Some(context.waker().clone());
    Poll::Pending
}
