//! The task of a stream, and how it waits.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use kirin_http::handler::Later;
use kirin_http::request_body::RequestBody;
use kirin_http::response::Response;

/// The most streams of a connection that are tasks. A stream that the client has given up may go on
/// as a task until its application has answered.
pub(crate) const MOST_TASKS: usize = 256;

/// Wakes a task that waits.
#[derive(Default)]
pub(crate) struct TaskWaker(Cell<Option<Waker>>);

impl TaskWaker {
    /// Notes the task that waits.
    pub(crate) fn set(&self, context: &Context<'_>) {
        let task = self.0.take().filter(|task| task.will_wake(context.waker()));
        self.0.set(Some(task.unwrap_or_else(|| context.waker().clone())));
    }

    pub(crate) fn wake(&self) {
        if let Some(task) = self.0.take() {
            task.wake();
        }
    }
}

/// Waits for the response of a stream whose waker is `task`. Returns `None` if the client has given
/// the request up before the work for it has begun. Work that has begun is waited for, so that a
/// worker can be given back; the watch over the client tells it to stop early.
pub(crate) async fn wait(
    later: Later,
    body: RequestBody,
    task: &TaskWaker,
    is_given_up: impl Fn() -> bool,
) -> Option<Response> {
    let mut start = Some((later, body));
    let mut work = None;
    poll_fn(|context| {
        task.set(context);
        match start.take() {
            Some(_) if is_given_up() => return Poll::Ready(None),
            Some((later, body)) => work = Some(later(body)),
            None => {}
        }
        match &mut work {
            Some(work) => work.as_mut().poll(context).map(Some),
            None => Poll::Ready(None),
        }
    })
    .await
}

/// Has the task go on when the loop has asked the kernel for events. A wake would let it go on
/// sixty times before that, and a request that comes meanwhile would wait for megabytes.
pub(crate) fn yield_turn(context: &mut Context<'_>) {
    let turn = pin!(tokio::task::yield_now());
    // Not ready: it has asked to be woken.
    let _ = turn.poll(context);
}
