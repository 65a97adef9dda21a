//! The channel between the old and the new program of an upgrade.
//!
//! The old program starts the program file again, in the same way as it was started itself. The new
//! one inherits the listening sockets and one end of this channel. It starts everything but accepts
//! no client. They send each other messages ([`Message`]), each a line of JSON:
//!
//! | from | message | meaning |
//! |---|---|---|
//! | new | `hello` | it has begun, and speaks this version of the hand-over |
//! | old | `hello`, `store` | the same, and where the numbers and the clock of the store begin |
//! | new | `loaded` | its applications are ready; the old one sends the store by its own socket |
//! | old | `tickets` | the store is sent; the secrets of TLS session tickets |
//! | old | `changes` | what operators have changed |
//! | new | `ready` | it has the store, and waits |
//! | old | `go` | it accepts connections until the new one does; the new one may serve |
//! | new | `serving` | it accepts connections; the old one ends |
//! | old | `draining` | the connections that it still has, once a second |
//! | new | `failed` | it cannot serve, for this reason; it may come instead of any other |
//!
//! If the channel ends before `serving`, or the time is over, the new program is ended and the old
//! one goes on. Before `go` the new program changes nothing that belongs to the old one. After it,
//! the old one ends it by KILL, so that it takes nothing along. After `serving` the channel ends
//! with the old program.

use std::io::{self, Write};
use std::time::Duration;

use kirin_store::HandOverError;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;

use crate::admin::operator_changes::OperatorChange;
use crate::life::ticket_secrets::ListenerSecret;

/// The version of the hand-over. Programs of different versions do not hand over to each other.
const VERSION: u32 = 5;

/// The longest message in bytes. There may be 10,000 blocked networks.
const MESSAGE_BYTES: usize = 4 << 20;

/// The most bytes of the reason for which a program cannot serve.
const REASON_BYTES: usize = 8 * 1024;

/// A message of one program to the other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Message {
    /// The sender is a Kirin.
    Hello {
        /// The version of the hand-over that it speaks.
        hand_over: u32,
        /// The version of the program.
        program: String,
        /// Its process id.
        pid: u32,
    },
    /// The applications of the new program are ready.
    Loaded,
    /// What the store of the new program has to know before it is used.
    Store(StoreStart),
    /// The secrets of TLS session tickets.
    Tickets(Vec<ListenerSecret>),
    /// What operators have changed in the old program.
    Changes(Vec<OperatorChange>),
    /// The new program can serve as soon as it is told to.
    Ready,
    /// The new program may serve.
    Go,
    /// The new program accepts connections.
    Serving {
        /// Its process id.
        pid: u32,
    },
    /// The new program cannot serve.
    Failed {
        /// The reason, as it has logged it.
        reason: String,
    },
    /// The old program finishes what it has begun.
    Draining {
        /// The connections that it still has.
        connections: u64,
    },
}

/// What the store of the new program has to know before it is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreStart {
    /// Its first sequence number.
    pub first_sequence: u64,
    /// By how many nanoseconds the steady clock of the old program is ahead of `CLOCK_BOOTTIME`.
    pub clock_nanos: i64,
}

impl Message {
    /// Returns the first message of this program.
    pub fn hello() -> Self {
        Self::Hello {
            hand_over: VERSION,
            program: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
        }
    }

    /// Returns the process id of a program that can take part in the same upgrade, if this is its
    /// first message.
    pub fn into_peer(self) -> Result<u32, UpgradeError> {
        match self {
            Self::Hello { hand_over: VERSION, pid, .. } => Ok(pid),
            Self::Hello { program, .. } => Err(UpgradeError::OtherVersion(program)),
            other => Err(UpgradeError::unexpected(&other)),
        }
    }

    fn line(&self) -> io::Result<Vec<u8>> {
        let mut line = serde_json::to_vec(self)?;
        line.push(b'\n');
        Ok(line)
    }
}

/// Why an upgrade does not happen.
#[derive(Debug, thiserror::Error)]
pub enum UpgradeError {
    /// The program file is gone, or is no program.
    #[error("{0} cannot be started: {1}")]
    Start(String, #[source] io::Error),
    /// The new program has told why it does not serve.
    #[error("the new program does not start: {0}")]
    Failed(String),
    /// The new program ended. It may have logged why.
    #[error("the new program ended before it served{0}; the log may say why")]
    Ended(String),
    /// The other program sent a message that does not belong there.
    #[error("the new program does not take over; is it another program than kirin? It said {0:?}")]
    Unexpected(String),
    /// The other program cannot take part in this upgrade.
    #[error(
        "kirin {0} and kirin {own} hand over in different ways: start Kirin again to change the \
         program", own = env!("CARGO_PKG_VERSION")
    )]
    OtherVersion(String),
    /// The new program took too long.
    #[error("the new program was not ready within {0:?}")]
    TooSlow(Duration),
    /// The contents of the store cannot be sent or received.
    #[error("the store cannot be handed over: {0}")]
    Store(#[from] HandOverError),
    /// The old program has ended.
    #[error("the kirin that this one was to follow has ended, or has not handed over")]
    PredecessorGone,
    /// The channel failed.
    #[error("channel between the old and the new program: {0}")]
    Channel(#[from] io::Error),
}

impl UpgradeError {
    /// Returns the error of a message that does not belong there.
    pub fn unexpected(message: &Message) -> Self {
        Self::Unexpected(format!("{message:?}"))
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

    /// Sends a message.
    pub async fn send(&mut self, message: &Message) -> io::Result<()> {
        self.stream.get_mut().write_all(&message.line()?).await
    }

    /// Waits for the next message. Returns `None` at the end of the channel.
    pub async fn receive(&mut self) -> Result<Option<Message>, UpgradeError> {
        let mut line = Vec::new();
        match (&mut self.stream).take(MESSAGE_BYTES as u64).read_until(b'\n', &mut line).await {
            Ok(_) if line.last() == Some(&b'\n') => {}
            Ok(_) => return Ok(None),
            // The other program ended without reading the last message.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(None),
            Err(error) => return Err(error.into()),
        }
        let unreadable = |_| UpgradeError::Unexpected(String::from_utf8_lossy(&line).into_owned());
        serde_json::from_slice(&line).map(Some).map_err(unreadable)
    }

    /// Waits for the next bytes and leaves them in the channel. There are none at its end.
    pub async fn peek(&mut self) -> io::Result<&[u8]> {
        self.stream.fill_buf().await
    }
}

/// Tells the old program why this one cannot serve. It is the last that this program does.
pub fn tell_failure(channel: &std::os::unix::net::UnixStream, reason: &str) {
    let end = (0..=REASON_BYTES.min(reason.len())).rev().find(|end| reason.is_char_boundary(*end));
    let reason = reason[..end.unwrap_or(0)].to_owned();
    let line = Message::Failed { reason }.line();
    // The old program may have ended. It learns of the failure by the end of this one, too.
    _ = line.and_then(|line| (&*channel).write_all(&line));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn channel() -> (UpgradeChannel, std::os::unix::net::UnixStream) {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        (UpgradeChannel::new(ours).unwrap(), theirs)
    }

    #[tokio::test]
    async fn messages_arrive_as_they_were_sent() {
        let (mut ours, theirs) = channel();
        let mut theirs = UpgradeChannel::new(theirs).unwrap();
        let all =
            [Message::hello(), Message::Loaded, Message::Go, Message::Draining { connections: 7 }];
        for message in &all {
            ours.send(message).await.unwrap();
        }
        drop(ours);
        for message in all {
            assert_eq!(theirs.receive().await.unwrap(), Some(message));
        }
        assert_eq!(theirs.receive().await.unwrap(), None);
    }

    #[tokio::test]
    async fn what_is_no_message_is_an_error_and_a_cut_one_is_the_end() {
        for (sent, expected) in [
            (&b"loaded\n"[..], Some("It said \"loaded\\n\"")),
            (b"{\"hello\":{}}\n", Some("hello")),
            (b"\n", Some("It said")),
            (b"\xff\n", Some("It said")),
            (b"\"load", None),
            (b"", None),
        ] {
            let (mut ours, mut theirs) = channel();
            theirs.write_all(sent).unwrap();
            drop(theirs);
            match (ours.receive().await, expected) {
                (Ok(None), None) => {}
                (Err(error), Some(part)) => assert!(error.to_string().contains(part), "{error}"),
                (received, _) => panic!("{received:?}"),
            }
        }
    }

    #[tokio::test]
    async fn a_long_reason_is_cut_between_two_characters() {
        let (mut ours, theirs) = channel();
        tell_failure(&theirs, &"é".repeat(REASON_BYTES));
        match ours.receive().await.unwrap() {
            Some(Message::Failed { reason }) => assert_eq!(reason.len(), REASON_BYTES),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn another_version_is_refused_politely() {
        let hello = |hand_over| Message::Hello { hand_over, program: "9.9".into(), pid: 7 };
        assert_eq!(hello(VERSION).into_peer().unwrap(), 7);
        let refused = hello(VERSION + 1).into_peer().unwrap_err().to_string();
        assert!(
            refused.contains("kirin 9.9") && refused.contains("start Kirin again"),
            "{refused}"
        );
        assert!(matches!(Message::Loaded.into_peer(), Err(UpgradeError::Unexpected(_))));
    }
}
