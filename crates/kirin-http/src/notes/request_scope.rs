//! The request that a thread works on. A line of the log that is written meanwhile can name it, and
//! neither the line's writer nor the parts between need to know the request.
//!
//! A task that waits lets others work, so each poll of its future enters the scope again
//! ([`InRequest`]).

use std::cell::Cell;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

use crate::request_id::RequestId;

thread_local! {
    static CURRENT: Cell<Option<RequestId>> = const { Cell::new(None) };
}

/// The time in which this thread works on a request. Dropping it ends it.
#[must_use]
pub struct RequestScope {
    /// The request in whose scope this one began.
    before: Option<RequestId>,
    /// The scope is that of this thread.
    _thread: PhantomData<*const ()>,
}

impl RequestScope {
    /// Begins to work on the request with this id.
    #[inline]
    pub fn enter(id: &RequestId) -> Self {
        // A thread that ends has no scope.
        let before = CURRENT.try_with(|current| current.replace(Some(id.clone()))).ok().flatten();
        Self { before, _thread: PhantomData }
    }
}

impl Drop for RequestScope {
    #[inline]
    fn drop(&mut self) {
        let _ = CURRENT.try_with(|current| current.set(self.before.take()));
    }
}

/// Returns the id of the request that this thread works on.
pub fn current_request() -> Option<RequestId> {
    let read = |current: &Cell<Option<RequestId>>| {
        let id = current.take();
        current.set(id.clone());
        id
    };
    CURRENT.try_with(read).ok().flatten()
}

pin_project! {
    /// A future that works on a request.
    pub struct InRequest<F> {
        id: Option<RequestId>,
        #[pin]
        future: F,
    }
}

impl<F: Future> InRequest<F> {
    /// Returns `future`, which works on the request with this id. `None` stands for no request.
    pub fn new(id: Option<RequestId>, future: F) -> Self {
        Self { id, future }
    }

    /// Returns `future`, which works on the request that this thread works on now. A task that is
    /// spawned for a request has no scope of its own.
    pub fn of_current(future: F) -> Self {
        Self::new(current_request(), future)
    }
}

impl<F: Future> Future for InRequest<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let _scope = this.id.as_ref().map(RequestScope::enter);
        this.future.poll(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::task::{LocalSet, spawn_local, yield_now};

    #[test]
    fn a_scope_within_another_gives_way_to_it() {
        assert_eq!(current_request(), None);
        let outer = RequestScope::enter(&RequestId::Made(1));
        {
            let _inner = RequestScope::enter(&RequestId::Taken("two".into()));
            assert_eq!(current_request(), Some(RequestId::Taken("two".into())));
            assert_eq!(current_request(), Some(RequestId::Taken("two".into())));
        }
        assert_eq!(current_request(), Some(RequestId::Made(1)));
        drop(outer);
        assert_eq!(current_request(), None);
    }

    #[tokio::test(flavor = "current_thread")]
    async fn tasks_that_take_turns_keep_their_requests() {
        let work = |number| {
            InRequest::new(Some(RequestId::Made(number)), async move {
                for _ in 0..3 {
                    assert_eq!(current_request(), Some(RequestId::Made(number)));
                    yield_now().await;
                }
                spawn_local(InRequest::of_current(async { current_request() })).await.unwrap()
            })
        };
        let all = async {
            let tasks = [1, 2, 3].map(|number| spawn_local(work(number)));
            for (task, number) in tasks.into_iter().zip(1..) {
                assert_eq!(current_request(), None);
                assert_eq!(task.await.unwrap(), Some(RequestId::Made(number)));
            }
        };
        LocalSet::new().run_until(all).await;
    }
}
