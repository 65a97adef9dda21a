//! The access log. A line has the combined format, then the part of the server that answered, then
//! the seconds it took. It ends in `cut` if the client did not get the complete response.
//!
//! Each event loop has an access log of its own, and all of them write to one file. Lines are
//! gathered and written together. A write has complete lines only, so that the lines of two loops
//! do not mix: the kernel does not split a write to a file opened for appending.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use kirin_http::basic_credentials::BasicCredentials;
use kirin_http::peer::Peer;
use kirin_http::request::{RequestHead, Version};
use parking_lot::RwLock;
use rustix::fs::OFlags;

use crate::logging::queued_writer::{Lost, Output, QueuedWriter, write_patiently};
use crate::observation::EndedRequest;

/// Gathered bytes after which they are written before the second is over.
const FLUSH_BYTES: usize = 32 * 1024;

/// The most bytes that wait for a file that takes none, such as a FIFO whose reader is stuck.
const QUEUE_BYTES: usize = 4 << 20;

/// The file of an access log. All event loops share it. It is opened again after it was renamed.
pub struct LogFile {
    current: Arc<Current>,
    /// The path of the file. `None` for a stream that the process was given.
    path: Option<PathBuf>,
    queue: QueuedWriter,
}

/// The file that is written now. Each write reads this again.
type Current = RwLock<Arc<File>>;

/// Writes to the file, on the thread of the queue.
struct LogOutput(Arc<Current>);

impl Output for LogOutput {
    fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        let file = Arc::clone(&self.0.read());
        write_patiently(&file, lines)
    }

    fn failed(&mut self, error: &io::Error) {
        tracing::error!(%error, "access log cannot be written; lines are lost until it can");
    }

    fn recovered(&mut self, lost_lines: u64) {
        tracing::warn!(lines = lost_lines, "access log is written again; lines were lost");
    }
}

impl LogFile {
    /// Opens a file for appending, and creates it if it does not exist.
    pub fn open(path: impl Into<PathBuf>) -> io::Result<Self> {
        let path = path.into();
        let file = open_for_appending(&path)?;
        Ok(Self::new(file, Some(path)))
    }

    /// Returns a log in `file`, which was opened for appending at `path`.
    pub fn from_file(file: File, path: impl Into<PathBuf>) -> Self {
        Self::new(file, Some(path.into()))
    }

    /// Returns a log in a stream, such as standard error. A stream is never opened again.
    pub fn stream(file: File) -> Self {
        Self::new(file, None)
    }

    fn new(file: File, path: Option<PathBuf>) -> Self {
        let current = Arc::new(RwLock::new(Arc::new(file)));
        let queue = QueuedWriter::new(Box::new(LogOutput(Arc::clone(&current))), QUEUE_BYTES);
        Self { current, path, queue }
    }

    /// Opens the file of the same path again. If that fails, the log stays in the old file.
    pub fn reopen(&self) -> io::Result<()> {
        if let Some(path) = &self.path {
            let file = open_for_appending(path)?;
            *self.current.write() = Arc::new(file);
        }
        Ok(())
    }

    /// Returns the path of the file, or `None` for a stream.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Returns the number of lines that could not be written.
    pub fn lost_lines(&self) -> u64 {
        self.queue.lost_lines()
    }

    /// Waits until all lines are written or lost, but no longer than `limit`.
    pub fn flush(&self, limit: Duration) {
        self.queue.flush(limit);
    }

    /// Queues complete lines. If the file takes none and the queue is full, they are lost and
    /// counted.
    fn push(&self, lines: &[u8]) {
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

/// The access log of one event loop. It writes one line for each response.
pub struct AccessLog {
    file: Arc<LogFile>,
    lines: RefCell<Vec<u8>>,
}

/// The part of a line that is known when a request arrives.
pub struct LineRecord {
    peer: String,
    user: Vec<u8>,
    request_line: Vec<u8>,
    referer: Vec<u8>,
    user_agent: Vec<u8>,
}

impl LineRecord {
    /// Takes from a request what its line needs.
    pub fn new(peer: &Peer, request: &RequestHead<'_>) -> Self {
        let mut request_line = Vec::with_capacity(request.target.len() + 24);
        request_line.extend_from_slice(request.method.as_str().as_bytes());
        request_line.push(b' ');
        request_line.extend_from_slice(request.target.as_bytes());
        request_line.push(b' ');
        request_line.extend_from_slice(match request.version {
            // nginx and Apache write it this way.
            Version::Http2 => b"HTTP/2.0",
            version => version.name().as_bytes(),
        });
        Self {
            peer: peer.to_string(),
            user: user(request),
            request_line,
            referer: request.field("referer").unwrap_or(b"-").to_vec(),
            user_agent: request.field("user-agent").unwrap_or(b"-").to_vec(),
        }
    }

    /// Returns the record of bytes that are not a request.
    pub fn unreadable(peer: &Peer) -> Self {
        let none = || b"-".to_vec();
        Self {
            peer: peer.to_string(),
            user: none(),
            request_line: none(),
            referer: none(),
            user_agent: none(),
        }
    }
}

impl AccessLog {
    /// Returns a log that appends to `file`.
    pub fn new(file: Arc<LogFile>) -> Self {
        Self { file, lines: RefCell::new(Vec::new()) }
    }

    /// Adds a line.
    pub fn end(&self, line: &LineRecord, request: &EndedRequest<'_>, now: SystemTime) {
        let mut lines = self.lines.borrow_mut();
        lines.extend_from_slice(line.peer.as_bytes());
        lines.extend_from_slice(b" - ");
        write_escaped(&line.user, &mut lines);
        lines.extend_from_slice(b" [");
        write_time(now, &mut lines);
        lines.extend_from_slice(b"] \"");
        write_escaped(&line.request_line, &mut lines);
        let _ = write!(lines, "\" {} {} \"", request.status.as_u16(), request.body_bytes);
        write_escaped(&line.referer, &mut lines);
        lines.extend_from_slice(b"\" \"");
        write_escaped(&line.user_agent, &mut lines);
        let seconds = request.took.as_secs_f64();
        let cut = if request.is_cut { " cut" } else { "" };
        let _ = writeln!(lines, "\" {} {seconds:.6}{cut}", request.answered_by.name());
        if lines.len() >= FLUSH_BYTES {
            drop(lines);
            self.flush();
        }
    }

    /// Queues the gathered lines for writing.
    pub fn flush(&self) {
        let mut lines = self.lines.borrow_mut();
        if !lines.is_empty() {
            self.file.push(&lines);
            lines.clear();
            lines.shrink_to(FLUSH_BYTES);
        }
    }
}

/// Returns the user name in `Authorization: Basic`, as nginx and Apache log it. The line of a 401
/// shows which user was refused.
fn user(request: &RequestHead<'_>) -> Vec<u8> {
    let credentials = request.field("authorization").and_then(BasicCredentials::parse);
    credentials
        .map(|credentials| credentials.user)
        .filter(|user| !user.is_empty())
        .unwrap_or_else(|| b"-".to_vec())
}

/// Writes `06/Nov/1994:08:49:37 +0000`, always in UTC.
fn write_time(time: SystemTime, out: &mut Vec<u8>) {
    let seconds = time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs();
    // httpdate knows the calendar: `Sun, 06 Nov 1994 08:49:37 GMT`.
    let date = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(seconds));
    let part = |range: std::ops::Range<usize>| date.get(range).unwrap_or("-");
    let _ = write!(out, "{}/{}/{}:{} +0000", part(5..7), part(8..11), part(12..16), part(17..25));
}

/// Escapes bytes as nginx does, so that a client cannot forge a line: `"`, `\`, control and
/// non-ASCII bytes become `\xHH`.
fn write_escaped(text: &[u8], out: &mut Vec<u8>) {
    for byte in text {
        match byte {
            b'"' | b'\\' | 0..=0x1f | 0x7f.. => {
                let _ = write!(out, "\\x{byte:02X}");
            }
            _ => out.push(*byte),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_cannot_forge_a_line() {
        let mut out = Vec::new();
        write_escaped(b"a\" 200\n\\\xff", &mut out);
        assert_eq!(out, br"a\x22 200\x0A\x5C\xFF");
    }

    #[test]
    fn the_time_is_that_of_the_combined_format() {
        let mut out = Vec::new();
        write_time(UNIX_EPOCH + Duration::from_secs(784_111_777), &mut out);
        assert_eq!(out, b"06/Nov/1994:08:49:37 +0000");
    }
}
