//! The targets of access logs: a file, a stream, or a daemon on a socket. All event loops share a
//! sink. A thread writes the lines, so that no loop waits.

use std::fs::{File, Metadata};
use std::io::{self, IsTerminal};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use rustix::fs::OFlags;

use super::journald::Journald;
use super::queued_writer::{
    LogOutput, Lost, QueuedWriter, WriteError, count_lines, write_patiently,
};
use super::syslog::{Syslog, SyslogServer};

/// The most bytes that wait for a sink that takes none, such as a FIFO whose reader is stuck.
const QUEUE_BYTES: usize = 4 << 20;

/// Where the lines of access logs go.
pub struct LogSink {
    kind: SinkKind,
    queue: QueuedWriter,
}

enum SinkKind {
    /// A file, which is opened again after it was renamed.
    File { current: Arc<Current>, path: PathBuf },
    /// A stream that the process was given.
    Stream { is_terminal: bool },
    /// A daemon, which gets each line with its priority and some values.
    Daemon,
}

/// The file that is written now. Each write reads this again.
type Current = RwLock<Arc<File>>;

/// Writes to the file, on the thread of the queue.
struct FileOutput {
    current: Arc<Current>,
    /// The device and the number of the file whose last line is incomplete, because a write has
    /// failed.
    torn: Option<(u64, u64)>,
}

impl FileOutput {
    fn new(current: Arc<Current>) -> Self {
        Self { current, torn: None }
    }
}

impl LogOutput for FileOutput {
    fn write(&mut self, lines: &[u8]) -> Result<(), WriteError> {
        let file = Arc::clone(&self.current.read());
        let mut is_torn = self.torn.take().is_some_and(|torn| ends_inside_line(&file, torn));
        let written = write_patiently(&file, lines, &mut is_torn);
        self.torn = if is_torn { file.metadata().ok().map(|file| identity(&file)) } else { None };
        // How many lines a failed write has written is not known.
        written.map_err(|error| WriteError { error, lost_lines: count_lines(lines) })
    }

    fn failed(&mut self, error: &io::Error) {
        log_failure(error);
    }

    fn recovered(&mut self, lost_lines: u64) {
        log_recovery(lost_lines);
    }
}

fn identity(file: &Metadata) -> (u64, u64) {
    (file.dev(), file.ino())
}

/// Returns whether `file` is the one with the torn line. It may have been opened again, or emptied.
fn ends_inside_line(file: &File, torn: (u64, u64)) -> bool {
    file.metadata()
        .is_ok_and(|file| identity(&file) == torn && !(file.is_file() && file.len() == 0))
}

/// Logs that lines are lost.
pub(super) fn log_failure(error: &io::Error) {
    tracing::error!(%error, "access log cannot be written; lines are lost until it can");
}

/// Logs that no more lines are lost.
pub(super) fn log_recovery(lost_lines: u64) {
    tracing::warn!(lines = lost_lines, "access log is written again; lines were lost");
}

impl LogSink {
    /// Opens a file for appending, and creates it if it does not exist.
    pub fn open(path: impl Into<PathBuf>) -> io::Result<Self> {
        let path = path.into();
        Ok(Self::from_file(open_for_appending(&path)?, path))
    }

    /// Returns a sink in `file`, which was opened for appending at `path`.
    pub fn from_file(file: File, path: impl Into<PathBuf>) -> Self {
        let current = Arc::new(RwLock::new(Arc::new(file)));
        let output = FileOutput::new(Arc::clone(&current));
        Self::new(SinkKind::File { current, path: path.into() }, Box::new(output))
    }

    /// Returns a sink in a stream, such as standard error. A stream is never opened again.
    pub fn stream(file: File) -> Self {
        let is_terminal = file.is_terminal();
        let output = FileOutput::new(Arc::new(RwLock::new(Arc::new(file))));
        Self::new(SinkKind::Stream { is_terminal }, Box::new(output))
    }

    /// Returns a sink in the journal that listens at `socket`.
    pub fn journald(socket: PathBuf) -> Self {
        Self::new(SinkKind::Daemon, Box::new(Journald::new(socket)))
    }

    /// Returns a sink in a syslog daemon.
    pub fn syslog(server: SyslogServer) -> Self {
        Self::new(SinkKind::Daemon, Box::new(Syslog::new(server)))
    }

    fn new(kind: SinkKind, output: Box<dyn LogOutput>) -> Self {
        Self { kind, queue: QueuedWriter::new(output, QUEUE_BYTES) }
    }

    /// Opens the file of the same path again. If that fails, the log stays in the old file.
    pub fn reopen(&self) -> io::Result<()> {
        if let SinkKind::File { current, path } = &self.kind {
            let file = open_for_appending(path)?;
            *current.write() = Arc::new(file);
        }
        Ok(())
    }

    /// Returns the path of a file. `None` for other sinks.
    pub fn path(&self) -> Option<&Path> {
        match &self.kind {
            SinkKind::File { path, .. } => Some(path),
            SinkKind::Stream { .. } | SinkKind::Daemon => None,
        }
    }

    /// Returns whether people read the lines while they are written.
    pub fn is_terminal(&self) -> bool {
        matches!(self.kind, SinkKind::Stream { is_terminal: true })
    }

    /// Returns whether the sink takes values beside a line ([`super::journald`]).
    pub(super) fn takes_values(&self) -> bool {
        matches!(self.kind, SinkKind::Daemon)
    }

    /// Returns the number of lines that could not be written.
    pub fn lost_lines(&self) -> u64 {
        self.queue.lost_lines()
    }

    /// Waits until all lines are written or lost, but no longer than `limit`.
    pub fn flush(&self, limit: Duration) {
        self.queue.flush(limit);
    }

    /// Queues complete lines. If the sink takes none and the queue is full, they are lost and
    /// counted.
    pub(super) fn push(&self, lines: &[u8]) {
        // The thread starts with the first lines, because the process changes its user while it has
        // one thread.
        self.queue.start();
        if let Err(Lost { is_first: true }) = self.queue.push(lines) {
            tracing::error!(
                "access log cannot be written: nobody reads it; lines are lost until somebody does"
            );
        }
    }
}

fn open_for_appending(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    // A FIFO is opened for reading as well: it may have no reader yet, or its reader may come back.
    let is_fifo = std::fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_fifo());
    // Query strings and user names are not for every user of the machine.
    options.append(true).create(!is_fifo).read(is_fifo).mode(0o640);
    // If the file becomes a FIFO meanwhile, opening it does not wait for a reader.
    options.custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(path)
}
