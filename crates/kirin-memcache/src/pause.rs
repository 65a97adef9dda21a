//! A pause of all clients: their commands wait. A store is handed over to another process in the
//! meantime.

use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;

/// A pause that all event loops see.
#[derive(Debug, Default)]
pub(crate) struct Pause {
    is_on: AtomicBool,
    waiting: Mutex<Vec<Waker>>,
}

impl Pause {
    /// Begins the pause. A loop may still carry out the commands that it has begun.
    pub(crate) fn begin(&self) {
        self.is_on.store(true, Ordering::SeqCst);
    }

    /// Ends the pause.
    pub(crate) fn end(&self) {
        let waiting = {
            let mut waiting = self.waiting.lock();
            self.is_on.store(false, Ordering::SeqCst);
            std::mem::take(&mut *waiting)
        };
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Waits for the end of the pause, if there is one.
    #[inline]
    pub(crate) fn poll_over(&self, cx: &mut Context<'_>) -> Poll<()> {
        match self.is_on.load(Ordering::Relaxed) {
            false => Poll::Ready(()),
            true => self.poll_end(cx),
        }
    }

    #[cold]
    fn poll_end(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut waiting = self.waiting.lock();
        if !self.is_on.load(Ordering::SeqCst) {
            return Poll::Ready(());
        }
        waiting.push(cx.waker().clone());
        Poll::Pending
    }
}
