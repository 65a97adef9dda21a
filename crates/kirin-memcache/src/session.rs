//! The session of one connection without its socket: bytes in, answers out.
//!
//! `connection.rs` feeds it the bytes of each read. The tests and the fuzzer feed it the same bytes
//! in any pieces and get the same answers. Between two commands a session owns no memory.

use std::task::{Context, Poll, ready};

use crate::codec::{self, Close, Command, ParsedInput};
use crate::execute::{Executed, Executor, Listing, OriginWork};
use crate::output::{OUTPUT_LIMIT_BYTES, OutputBuffer};
use crate::watch::Watcher;

/// The largest first buffer for a data block in bytes, whatever length was announced. It then grows
/// with the bytes that arrive.
const FIRST_BLOCK_BYTES: usize = 64 << 10;

/// The first byte of a request in memcached's binary protocol.
const BINARY_MAGIC: u8 = 0x80;

/// The next step of the caller after it has fed a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Send the answers and read on.
    Read,
    /// Send the answers, then feed an empty slice before reading on, because some input is left.
    Drain,
    /// Send the answers, then the lines of [`MemcachedSession::watcher`] as they come. Input is
    /// ignored from now on.
    Watch,
    /// Send the answers, then wait for [`MemcachedSession::poll_origin`].
    Wait,
    /// Send the answers, then close the connection.
    Close(SessionEnding),
}

/// The reason why a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SessionEnding {
    /// The client sent `quit`.
    #[error("quit")]
    Quit,
    /// The input is not the text protocol.
    #[error("{0}")]
    NotText(Close),
    /// The first byte is that of the binary protocol.
    #[error("the binary protocol, which Kirin does not speak; set the client to the text protocol")]
    Binary,
}

/// The state of a connection between two reads.
#[derive(Debug, Default)]
pub struct MemcachedSession {
    begun: bool,
    state: SessionState,
}

#[derive(Debug, Default)]
enum SessionState {
    /// No command has begun.
    #[default]
    Idle,
    /// Input that waits: an unfinished line, or complete commands while the output is over its
    /// limit. The first `searched` bytes have no line end.
    Pending { input: Vec<u8>, searched: usize },
    /// A storage command whose data block is not complete.
    Block { line: Box<[u8]>, block: Vec<u8>, length: usize },
    /// A list whose next piece is due, and input that waits for its end.
    Listing { listing: Box<Listing>, input: Vec<u8> },
    /// The client watches, and gives no more commands.
    Watching(Watcher),
    /// A command that waits for the origin of the store, and input that waits for its end. The
    /// first `skip` bytes of what comes next belong to a data block that is skipped.
    AtOrigin { work: OriginWork, input: Vec<u8>, skip: usize },
    /// A data block that is skipped. This many bytes are still missing.
    Skip(usize),
}

impl MemcachedSession {
    /// Carries out the commands that `input` completes.
    pub fn feed(&mut self, input: &[u8], executor: &Executor, output: &mut OutputBuffer) -> Flow {
        if !self.begun && !input.is_empty() {
            self.begun = true;
            if input.first() == Some(&BINARY_MAGIC) {
                return Flow::Close(SessionEnding::Binary);
            }
        }
        match std::mem::take(&mut self.state) {
            SessionState::Idle => self.commands(input, executor, output),
            SessionState::Pending { input: mut pending, searched } => {
                pending.extend_from_slice(input);
                if memchr::memchr(b'\n', pending.get(searched..).unwrap_or_default()).is_none() {
                    return match codec::unfinished_line(&pending) {
                        ParsedInput::Close(close) => Flow::Close(SessionEnding::NotText(close)),
                        _ => {
                            let searched = pending.len();
                            self.state = SessionState::Pending { input: pending, searched };
                            Flow::Read
                        }
                    };
                }
                self.commands(&pending, executor, output)
            }
            SessionState::Block { line, mut block, length } => {
                let missing = length.saturating_sub(block.len());
                let (data, rest) = input.split_at(missing.min(input.len()));
                block.extend_from_slice(data);
                self.state = SessionState::Block { line, block, length };
                self.finish_block(executor, output);
                if let SessionState::AtOrigin { input, .. } = &mut self.state {
                    input.extend_from_slice(rest);
                    return Flow::Wait;
                }
                self.commands_if_idle(rest, executor, output)
            }
            SessionState::Listing { listing, input: mut pending } => {
                pending.extend_from_slice(input);
                self.list(listing, pending, executor, output)
            }
            SessionState::Watching(watcher) => {
                self.state = SessionState::Watching(watcher);
                Flow::Watch
            }
            SessionState::AtOrigin { work, input: mut pending, skip } => {
                pending.extend_from_slice(input);
                self.state = SessionState::AtOrigin { work, input: pending, skip };
                Flow::Wait
            }
            SessionState::Skip(bytes) => {
                let (skipped, rest) = input.split_at(bytes.min(input.len()));
                if skipped.len() < bytes {
                    self.state = SessionState::Skip(bytes - skipped.len());
                    return Flow::Read;
                }
                self.commands(rest, executor, output)
            }
        }
    }

    /// Returns a session that another process has begun.
    pub fn begun() -> Self {
        Self { begun: true, state: SessionState::Idle }
    }

    /// Returns whether no command has begun.
    pub fn is_between_commands(&self) -> bool {
        matches!(self.state, SessionState::Idle)
    }

    /// Returns the buffer of an unfinished data block and the number of missing bytes. A caller
    /// that reads directly into the buffer then calls [`MemcachedSession::block_grew`].
    pub fn block_mut(&mut self) -> Option<(&mut Vec<u8>, usize)> {
        match &mut self.state {
            SessionState::Block { block, length, .. } => {
                let missing = length.saturating_sub(block.len());
                Some((block, missing))
            }
            _ => None,
        }
    }

    /// Returns the watcher of a client that watches.
    pub fn watcher(&self) -> Option<&Watcher> {
        match &self.state {
            SessionState::Watching(watcher) => Some(watcher),
            _ => None,
        }
    }

    /// Writes the next piece of a list. `input` waits until the list is complete.
    fn list(
        &mut self,
        mut listing: Box<Listing>,
        input: Vec<u8>,
        executor: &Executor,
        output: &mut OutputBuffer,
    ) -> Flow {
        if executor.continue_listing(&mut listing, output) {
            self.state = SessionState::Listing { listing, input };
        } else if input.is_empty() {
            return Flow::Read;
        } else {
            self.state = SessionState::Pending { input, searched: 0 };
        }
        // Other connections have their turn before the next piece and before the next command.
        Flow::Drain
    }

    /// Carries out the storage command if its data block is complete.
    pub fn block_grew(&mut self, executor: &Executor, output: &mut OutputBuffer) -> Flow {
        self.finish_block(executor, output)
    }

    fn finish_block(&mut self, executor: &Executor, output: &mut OutputBuffer) -> Flow {
        match std::mem::take(&mut self.state) {
            SessionState::Block { line, block, length } if block.len() == length => {
                if executor.has_origin() {
                    return self.ask_origin(line.into(), &block, Vec::new(), 0, executor);
                }
                executor.execute(codec::parse_stored(&line, block, executor.limits()), output);
            }
            state => self.state = state,
        }
        Flow::Read
    }

    /// Lets a command wait for the origin, with its data block if that is not behind the line yet.
    /// Of the `input` that follows, `skip` bytes are not needed.
    #[cold]
    fn ask_origin(
        &mut self,
        mut command: Vec<u8>,
        block: &[u8],
        input: Vec<u8>,
        skip: usize,
        executor: &Executor,
    ) -> Flow {
        command.extend_from_slice(block);
        let Some(work) = executor.begin_at_origin(command) else { return Flow::Read };
        self.state = SessionState::AtOrigin { work, input, skip };
        Flow::Wait
    }

    /// Lets a command that is not held yet, or the line in its place, wait for the origin.
    #[cold]
    fn hold(
        &mut self,
        command: &[u8],
        line: Option<Vec<u8>>,
        rest: &[u8],
        skip: usize,
        executor: &Executor,
    ) -> Flow {
        let command = line.unwrap_or_else(|| command.to_vec());
        self.ask_origin(command, b"", rest.to_vec(), skip, executor)
    }

    /// Returns whether a command waits for the origin.
    pub(crate) fn is_at_origin(&self) -> bool {
        matches!(self.state, SessionState::AtOrigin { .. })
    }

    /// Waits for the answer of the origin, and goes on with the input that has waited.
    #[cold]
    pub(crate) fn poll_origin(
        &mut self,
        cx: &mut Context<'_>,
        executor: &Executor,
        output: &mut OutputBuffer,
    ) -> Poll<Flow> {
        let SessionState::AtOrigin { work, input, skip } = &mut self.state else {
            return Poll::Ready(Flow::Read);
        };
        let answer = ready!(work.poll(cx));
        let (mut pending, skip) = (answer.rest, *skip);
        pending.append(input);
        output.append(answer.output);
        executor.tick();
        self.state = if skip > 0 { SessionState::Skip(skip) } else { SessionState::Idle };
        Poll::Ready(if pending.is_empty() {
            Flow::Read
        } else {
            self.feed(&pending, executor, output)
        })
    }

    fn commands_if_idle(
        &mut self,
        input: &[u8],
        executor: &Executor,
        output: &mut OutputBuffer,
    ) -> Flow {
        match self.state {
            SessionState::Idle if !input.is_empty() => self.commands(input, executor, output),
            _ => Flow::Read,
        }
    }

    /// Carries out one command after another from `input`. This is the hot path.
    fn commands(
        &mut self,
        mut input: &[u8],
        executor: &Executor,
        output: &mut OutputBuffer,
    ) -> Flow {
        loop {
            if input.is_empty() {
                return Flow::Read;
            }
            if output.unsent_bytes() > OUTPUT_LIMIT_BYTES {
                self.state = SessionState::Pending { input: input.to_vec(), searched: 0 };
                return Flow::Drain;
            }
            match codec::parse(input, executor.limits()) {
                ParsedInput::Command { command: Command::Quit, .. } => {
                    return Flow::Close(SessionEnding::Quit);
                }
                ParsedInput::Command { command, consumed, skip } => {
                    let rest = input.get(consumed..).unwrap_or_default();
                    match executor.execute(command, output) {
                        Executed::Done => {}
                        Executed::Paused(unfinished) => {
                            let mut pending = unfinished;
                            pending.extend_from_slice(rest);
                            self.state = SessionState::Pending { input: pending, searched: 0 };
                            return Flow::Drain;
                        }
                        Executed::Listing(listing) => {
                            return self.list(Box::new(listing), rest.to_vec(), executor, output);
                        }
                        Executed::Watching(watcher) => {
                            self.state = SessionState::Watching(watcher);
                            return Flow::Watch;
                        }
                        Executed::AtOrigin(line) => {
                            let (command, rest) = input.split_at(consumed.min(input.len()));
                            return self.hold(command, line, rest, skip, executor);
                        }
                    }
                    if skip > rest.len() {
                        self.state = SessionState::Skip(skip - rest.len());
                        return Flow::Read;
                    }
                    input = rest.get(skip..).unwrap_or_default();
                }
                ParsedInput::NeedLine => {
                    self.state =
                        SessionState::Pending { input: input.to_vec(), searched: input.len() };
                    return Flow::Read;
                }
                ParsedInput::NeedBlock { line, block: length } => {
                    let (line, data) = input.split_at(line.min(input.len()));
                    let mut block =
                        Vec::with_capacity(length.min(FIRST_BLOCK_BYTES).max(data.len()));
                    block.extend_from_slice(data);
                    self.state = SessionState::Block { line: line.into(), block, length };
                    return Flow::Read;
                }
                ParsedInput::Close(close) => return Flow::Close(SessionEnding::NotText(close)),
            }
        }
    }
}
