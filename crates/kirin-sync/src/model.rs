//! Runs a test in all orders of its threads.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use loom::sync::Condvar;
pub use loom::thread::{JoinHandle, spawn, yield_now};

use crate::Mutex;

/// The most steps of one order. A test that needs more waits for itself.
const MAX_STEPS: usize = 20_000;

/// Runs `test` once for each order of the steps of its threads, with at most `preemptions`
/// interruptions of a thread that could go on.
pub fn check(preemptions: usize, test: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = MAX_STEPS;
    builder.check(test);
}

/// Waits for a thread.
///
/// # Panics
///
/// If the thread has panicked.
pub fn join<T>(thread: JoinHandle<T>) -> T {
    #[expect(clippy::expect_used, reason = "This is a part of tests.")]
    thread.join().expect("the thread has panicked")
}

/// Waits for the end of `future`. If nothing wakes it any more, loom ends the test: `deadlock`.
pub fn wait_for<T>(future: impl Future<Output = T>) -> T {
    let bell = Arc::new(Bell { rings: Mutex::new(false), rung: Condvar::new() });
    let waker = Waker::from(Arc::clone(&bell));
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return value;
        }
        let mut rings = bell.rings.lock();
        while !*rings {
            rings = bell.rung.wait(rings).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
        *rings = false;
    }
}

/// Wakes a thread that waits for a future.
struct Bell {
    rings: Mutex<bool>,
    rung: Condvar,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        *self.rings.lock() = true;
        self.rung.notify_one();
    }
}
