//! A writer whose callers never wait: it queues lines, and a thread writes them.
//!
//! The reader of a log may be stuck, or the disk full. An event loop that wrote to such a log
//! itself would serve no client during that time. When the queue is full, lines are lost and
//! counted.

use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use kirin_faults::{Errno, Point};
use parking_lot::{Condvar, Mutex};
use rustix::event::{PollFd, PollFlags};

static WRITE: Point = Point::new("log.write", &[Errno::NOSPC, Errno::IO, Errno::PIPE]);

/// The output of a [`QueuedWriter`]. Its functions run on the writer's thread and may wait.
pub trait LogOutput: Send + 'static {
    /// Writes complete lines.
    fn write(&mut self, lines: &[u8]) -> Result<(), WriteError>;

    /// Reports that lines cannot be written. Called once, until [`LogOutput::recovered`].
    fn failed(&mut self, error: &io::Error);

    /// Reports that lines are written again, after this many were lost.
    fn recovered(&mut self, lost_lines: u64);
}

/// The reason why lines could not be written.
#[derive(Debug)]
pub struct WriteError {
    /// The error.
    pub error: io::Error,
    /// The number of lines that are lost by it.
    pub lost_lines: u64,
}

/// A queue of lines, and the thread that writes them.
pub struct QueuedWriter {
    shared: Arc<SharedWriter>,
    limit_bytes: usize,
    /// The output, until the thread is started.
    output: Mutex<Option<Box<dyn LogOutput>>>,
}

#[derive(Default)]
struct SharedWriter {
    state: Mutex<WriterState>,
    /// Wakes the thread: there are lines to write.
    filled: Condvar,
    /// Wakes the callers that wait until all lines are written or lost.
    emptied: Condvar,
}

#[derive(Default)]
struct WriterState {
    lines: Vec<u8>,
    is_writing: bool,
    lost_lines: u64,
    /// The number of lost lines that were reported to the output.
    reported_lines: u64,
    is_abandoned: bool,
}

/// Lines were lost because the queue had no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// Whether these are the first lines that were lost since lines were last written.
    pub is_first: bool,
}

impl QueuedWriter {
    /// Returns a queue of at most `limit_bytes`. It writes nothing before [`QueuedWriter::start`].
    pub fn new(output: Box<dyn LogOutput>, limit_bytes: usize) -> Self {
        Self { shared: Arc::default(), limit_bytes, output: Mutex::new(Some(output)) }
    }

    /// Starts the thread if it does not run yet.
    pub fn start(&self) {
        let Some(output) = self.output.lock().take() else { return };
        let shared = Arc::clone(&self.shared);
        let spawned = std::thread::Builder::new()
            .name("log".into())
            .spawn(move || write_lines(&shared, output));
        if spawned.is_err() {
            self.shared.state.lock().is_abandoned = true;
        }
    }

    /// Queues complete lines if there is room for them.
    pub fn push(&self, lines: &[u8]) -> Result<(), Lost> {
        let mut state = self.shared.state.lock();
        if state.lines.len() + lines.len() > self.limit_bytes || state.is_abandoned {
            let is_first = state.lost_lines == state.reported_lines;
            state.lost_lines += count_lines(lines);
            return Err(Lost { is_first });
        }
        state.lines.extend_from_slice(lines);
        drop(state);
        self.shared.filled.notify_one();
        Ok(())
    }

    /// Returns the number of lines that were lost so far.
    pub fn lost_lines(&self) -> u64 {
        self.shared.state.lock().lost_lines
    }

    /// Waits until all lines are written or lost, but no longer than `limit`.
    pub fn flush(&self, limit: Duration) {
        self.start();
        let until = Instant::now() + limit;
        let mut state = self.shared.state.lock();
        while (!state.lines.is_empty() || state.is_writing) && !state.is_abandoned {
            if self.shared.emptied.wait_until(&mut state, until).timed_out() {
                return;
            }
        }
    }
}

impl Drop for QueuedWriter {
    fn drop(&mut self) {
        self.shared.state.lock().is_abandoned = true;
        self.shared.filled.notify_one();
    }
}

fn write_lines(shared: &SharedWriter, mut output: Box<dyn LogOutput>) {
    let (mut lines, mut is_failing) = (Vec::new(), false);
    loop {
        let mut state = shared.state.lock();
        state.is_writing = false;
        if state.lines.is_empty() {
            shared.emptied.notify_all();
        }
        while state.lines.is_empty() {
            if state.is_abandoned {
                return;
            }
            shared.filled.wait(&mut state);
        }
        std::mem::swap(&mut lines, &mut state.lines);
        state.is_writing = true;
        drop(state);
        let lost_lines = match output.write(&lines) {
            Ok(()) => {
                is_failing = false;
                let mut state = shared.state.lock();
                let lost_before = state.lost_lines - state.reported_lines;
                state.reported_lines = state.lost_lines;
                lost_before
            }
            Err(WriteError { error, lost_lines }) => {
                shared.state.lock().lost_lines += lost_lines;
                if !std::mem::replace(&mut is_failing, true) {
                    output.failed(&error);
                }
                0
            }
        };
        if lost_lines > 0 {
            output.recovered(lost_lines);
        }
        lines.clear();
        // A full queue is rare, so its memory is not kept.
        lines.shrink_to(KEPT_BYTES);
    }
}

/// Writes all of `lines`, even if another process that shares the file has made it non-blocking.
/// `is_torn` says whether the write before has failed inside a line. Then the next line begins on a
/// line of its own.
pub fn write_patiently(file: &File, lines: &[u8], is_torn: &mut bool) -> io::Result<()> {
    if *is_torn {
        write_all(file, b"\n", is_torn)?;
    }
    write_all(file, lines, is_torn)
}

fn write_all(mut file: &File, mut lines: &[u8], is_torn: &mut bool) -> io::Result<()> {
    while !lines.is_empty() {
        WRITE.pass()?;
        match file.write(&lines[..WRITE.shorten(lines.len())]) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => {
                let (written, rest) = lines.split_at(count);
                (*is_torn, lines) = (!written.ends_with(b"\n"), rest);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                rustix::event::poll(&mut [PollFd::new(file, PollFlags::OUT)], None)?;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The size of an empty queue's buffer.
const KEPT_BYTES: usize = 64 * 1024;

/// Returns the number of lines.
pub fn count_lines(lines: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', lines).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    /// An output that writes when it is allowed to, and reports what happened.
    struct Slow {
        may_write: mpsc::Receiver<io::Result<()>>,
        events: mpsc::Sender<String>,
    }

    impl LogOutput for Slow {
        fn write(&mut self, lines: &[u8]) -> Result<(), WriteError> {
            let allowed = self.may_write.recv().map_err(io::Error::other);
            allowed
                .and_then(|allowed| allowed)
                .map_err(|error| WriteError { error, lost_lines: count_lines(lines) })?;
            let lines = String::from_utf8_lossy(lines).replace('\n', "|");
            _ = self.events.send(format!("wrote {lines}"));
            Ok(())
        }

        fn failed(&mut self, error: &io::Error) {
            _ = self.events.send(format!("failed: {error}"));
        }

        fn recovered(&mut self, lost_lines: u64) {
            _ = self.events.send(format!("lost {lost_lines}"));
        }
    }

    fn slow(
        limit_bytes: usize,
    ) -> (QueuedWriter, mpsc::Sender<io::Result<()>>, mpsc::Receiver<String>) {
        let ((let_it, may_write), (events, seen)) = (mpsc::channel(), mpsc::channel());
        (QueuedWriter::new(Box::new(Slow { may_write, events }), limit_bytes), let_it, seen)
    }

    #[test]
    fn a_stuck_output_delays_no_one_and_lost_lines_are_counted() {
        let (writer, let_it, seen) = slow(10);
        assert_eq!(writer.push(b"one\n"), Ok(()));
        assert_eq!(writer.push(b"two\n"), Ok(()), "before it is started");
        assert_eq!(writer.push(b"three\n"), Err(Lost { is_first: true }));
        assert_eq!(writer.push(b"four\nfive\n"), Err(Lost { is_first: false }));
        assert_eq!(writer.lost_lines(), 3);
        writer.flush(Duration::from_millis(10));
        let_it.send(Ok(())).unwrap();
        assert_eq!(seen.recv().unwrap(), "wrote one|two|");
        assert_eq!(seen.recv().unwrap(), "lost 3");
        assert_eq!(writer.push(b"six\n"), Ok(()));
        let_it.send(Ok(())).unwrap();
        writer.flush(Duration::from_secs(60));
        assert_eq!(seen.recv().unwrap(), "wrote six|");
        assert_eq!(writer.lost_lines(), 3, "a total");
    }

    #[test]
    fn a_failing_output_is_reported_once_and_retried() {
        let (writer, let_it, seen) = slow(100);
        for answer in [Err(io::Error::other("full")), Err(io::Error::other("full")), Ok(())] {
            writer.push(b"line\n").unwrap();
            let_it.send(answer).unwrap();
            writer.flush(Duration::from_secs(60));
        }
        assert_eq!(seen.try_iter().collect::<Vec<_>>(), ["failed: full", "wrote line|", "lost 2"]);
    }

    #[test]
    fn after_a_torn_line_the_next_one_begins_anew() {
        let mut file = tempfile::tempfile().unwrap();
        let mut is_torn = false;
        // As after a write that has failed there.
        write_patiently(&file, b"one\ntw", &mut is_torn).unwrap();
        assert!(is_torn);
        write_patiently(&file, b"three\n", &mut is_torn).unwrap();
        write_patiently(&file, b"four\n", &mut is_torn).unwrap();
        assert!(!is_torn);
        let mut text = String::new();
        io::Seek::rewind(&mut file).unwrap();
        io::Read::read_to_string(&mut file, &mut text).unwrap();
        assert_eq!(text, "one\ntw\nthree\nfour\n");
    }

    #[test]
    fn a_non_blocking_file_gets_all_lines() {
        let (mut reader, writer) = io::pipe().unwrap();
        rustix::io::ioctl_fionbio(&writer, true).unwrap();
        let writer = File::from(std::os::fd::OwnedFd::from(writer));
        let lines = vec![b'x'; 1 << 20];
        let reading = std::thread::spawn(move || {
            let mut all = Vec::new();
            io::Read::read_to_end(&mut reader, &mut all).map(|_| all)
        });
        write_patiently(&writer, &lines, &mut false).unwrap();
        drop(writer);
        assert_eq!(reading.join().unwrap().unwrap().len(), lines.len());
    }
}
