//! The lines that a watcher has not taken yet.

use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;

/// The most bytes of lines in a ring. It is memcached's default of `watcher_logbuf_size`.
pub(crate) const RING_LIMIT_BYTES: usize = 256 << 10;

/// The ring of one watcher. Every loop may write to it.
#[derive(Debug, Default)]
pub(crate) struct WatcherRing {
    lines: Mutex<Lines>,
}

#[derive(Debug, Default)]
struct Lines {
    text: String,
    /// Lines that found no room since the text was taken last.
    skipped: u64,
    /// The watcher, if it waits for lines.
    waiting: Option<Waker>,
}

impl WatcherRing {
    /// Adds a line. Returns false if there is no room: the line is skipped.
    pub(crate) fn push(&self, line: &str) -> bool {
        let mut lines = self.lines.lock();
        // Lines that came later would stand before the note about those that were skipped.
        if lines.skipped > 0 || lines.text.len() + line.len() > RING_LIMIT_BYTES {
            lines.skipped += 1;
            return false;
        }
        lines.text.push_str(line);
        debug_assert!(lines.text.len() <= RING_LIMIT_BYTES, "{} bytes", lines.text.len());
        let waiting = lines.waiting.take();
        drop(lines);
        if let Some(waker) = waiting {
            waker.wake();
        }
        true
    }

    /// Takes all lines. The last one tells how many were skipped after them. Pending if there are
    /// none.
    pub(crate) fn poll_take(&self, cx: &mut Context<'_>) -> Poll<String> {
        let mut lines = self.lines.lock();
        if lines.text.is_empty() && lines.skipped == 0 {
            lines.waiting = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let mut text = std::mem::take(&mut lines.text);
        match std::mem::take(&mut lines.skipped) {
            0 => {}
            skipped => text.push_str(&format!("skipped={skipped}\n")),
        }
        Poll::Ready(text)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Wakes(AtomicUsize);

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_full_ring_skips_lines_and_says_how_many() {
        let ring = WatcherRing::default();
        let line = "x".repeat(1023) + "\n";
        let taken = (0..1000).filter(|_| ring.push(&line)).count();
        assert_eq!(taken, RING_LIMIT_BYTES / 1024);
        assert!(!ring.push("short\n"), "it would stand before the note");
        let mut cx = Context::from_waker(Waker::noop());
        let expected = line.repeat(taken) + &format!("skipped={}\n", 1001 - taken);
        assert_eq!(ring.poll_take(&mut cx), Poll::Ready(expected));
        assert!(ring.push("next\n"));
        assert_eq!(ring.poll_take(&mut cx), Poll::Ready("next\n".into()));
        assert!(ring.poll_take(&mut cx).is_pending());
    }

    #[test]
    fn a_line_wakes_a_watcher_that_waits() {
        let (ring, wakes) = (WatcherRing::default(), Arc::<Wakes>::default());
        let waker = Waker::from(Arc::clone(&wakes));
        let mut cx = Context::from_waker(&waker);
        assert!(ring.poll_take(&mut cx).is_pending());
        ring.push("one\n");
        ring.push("two\n");
        assert_eq!(wakes.0.load(Ordering::Relaxed), 1, "it does not wait any more");
        assert_eq!(ring.poll_take(&mut cx), Poll::Ready("one\ntwo\n".into()));
    }
}
