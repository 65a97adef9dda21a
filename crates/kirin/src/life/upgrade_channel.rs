//! The channel between the old and the new program of an upgrade.
//!
//! The old program starts the program file again, in the same way as it was started itself. The new
//! one inherits the listening sockets and one end of this channel. It starts everything but accepts
//! no client. Then they send each other lines:
//!
//! | from | line | meaning |
//! |---|---|---|
//! | new | `loaded` | its applications are ready |
//! | old | `store PATH` | the file has the contents of the store, as they were at `loaded` |
//! | new | `serving PID` | it has the store and accepts connections; the old one ends |
//!
//! If the channel ends before that, or the time is over, the new program is ended and the old one
//! goes on.

use std::io;
use std::time::Duration;

use kirin_store::SnapshotError;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;

/// The longest line in bytes. It is longer than a path may be.
const LINE_BYTES: u64 = 8192;

/// The line of a new program whose applications are ready.
pub const LOADED: &[u8] = b"loaded";
/// The start of the line that names the file with the store.
pub const STORE: &[u8] = b"store ";
/// The start of the line with the process id of a new program that serves.
pub const SERVING: &[u8] = b"serving ";

/// Why an upgrade does not happen.
#[derive(Debug, thiserror::Error)]
pub enum UpgradeError {
    /// The program file is gone, or is no program.
    #[error("{0} cannot be started: {1}")]
    Start(String, #[source] io::Error),
    /// The new program ended. It has logged why.
    #[error("the new program ended before it served")]
    Ended,
    /// The other program sent an unknown line.
    #[error("the new program does not take over; is it another program than kirin? It said {0:?}")]
    Unexpected(String),
    /// The new program took too long.
    #[error("the new program was not ready within {0:?}")]
    TooSlow(Duration),
    /// The contents of the store cannot be written or read.
    #[error("the store cannot be carried over: {0}")]
    Store(#[from] SnapshotError),
    /// The old program has ended.
    #[error("the kirin that this one was to follow has ended, or has not handed over")]
    PredecessorGone,
    /// The channel failed.
    #[error("channel between the old and the new program: {0}")]
    Channel(#[from] io::Error),
}

impl UpgradeError {
    /// Returns the error of a line that is not in the table.
    pub fn unexpected(line: &[u8]) -> Self {
        Self::Unexpected(String::from_utf8_lossy(line).into_owned())
    }
}

/// One end of the channel.
pub struct UpgradeChannel {
    stream: BufReader<UnixStream>,
}

impl UpgradeChannel {
    /// Takes a socket over.
    pub fn new(stream: std::os::unix::net::UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self { stream: BufReader::new(UnixStream::from_std(stream)?) })
    }

    /// Sends a line.
    pub async fn send(&mut self, line: &[u8]) -> io::Result<()> {
        self.stream.get_mut().write_all(&[line, b"\n"].concat()).await
    }

    /// Waits for the next line. Returns `None` at the end of the channel.
    pub async fn receive(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut line = Vec::new();
        match (&mut self.stream).take(LINE_BYTES).read_until(b'\n', &mut line).await {
            Ok(_) if line.pop() == Some(b'\n') => Ok(Some(line)),
            Ok(_) => Ok(None),
            // The other program ended without reading the last line.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Waits for the next bytes and leaves them in the channel. There are none at its end.
    pub async fn peek(&mut self) -> io::Result<&[u8]> {
        self.stream.fill_buf().await
    }
}
