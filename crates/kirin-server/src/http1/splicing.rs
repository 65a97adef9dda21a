//! Moves response bodies from a server's socket to the client's socket by splice(2), so that the
//! bytes do not pass through the memory of the process. `sending` uses it if the stream
//! ([`BodyStream::spliceable`]) and the client allow it: not over TLS, not in chunks, not over
//! HTTP/2.
//!
//! A pipe connects the two sockets. A response has a pipe only while bytes are in it, so an event
//! loop needs only a few.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use std::task::{Context, Poll};

use kirin_faults::{Errno, Point};
use kirin_http::body::BodyStream;
use kirin_http::pace::Pace;
use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};

use crate::connection::io::Io;

static OPEN_PIPE: Point = Point::new("pipe.open", &[Errno::MFILE, Errno::NFILE]);

/// Shorter bodies are read and written, because a pipe needs two system calls for each piece as
/// well.
const MIN_BYTES: u64 = 64 * 1024;

/// The size of a pipe, and so the most bytes that a slow reader holds in the kernel. A user without
/// privileges may have 64 MB in pipes.
const PIPE_BYTES: usize = 256 * 1024;

/// The most pipes in use by one listener on one loop. When all are in use, bodies are copied.
const MAX_PIPES: usize = 64;

/// The most pipes that are kept for later responses.
const KEPT_PIPES: usize = 8;

/// The pipes of one listener on one event loop.
#[derive(Default)]
pub(crate) struct Pipes {
    idle: RefCell<Vec<Rc<Pipe>>>,
    in_use: Cell<usize>,
}

struct Pipe {
    read: OwnedFd,
    write: OwnedFd,
}

/// A pipe in use. It is closed when dropped, because bytes may be left in it.
struct BorrowedPipe<'a> {
    pipe: Rc<Pipe>,
    home: &'a Pipes,
}

impl Pipes {
    /// Returns an empty pipe, or `None` if too many are in use.
    fn take(&self) -> Option<BorrowedPipe<'_>> {
        if self.in_use.get() == MAX_PIPES {
            return None;
        }
        let idle = self.idle.borrow_mut().pop();
        let pipe = match idle {
            Some(pipe) => pipe,
            None => Rc::new(Pipe::new().ok()?),
        };
        self.in_use.set(self.in_use.get() + 1);
        debug_assert!(self.in_use.get() <= MAX_PIPES, "{} pipes are in use", self.in_use.get());
        Some(BorrowedPipe { pipe, home: self })
    }
}

impl Pipe {
    /// Returns a pipe of full size. A user with too many pipes gets small ones, which bring no
    /// gain.
    fn new() -> io::Result<Self> {
        OPEN_PIPE.pass()?;
        let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        fcntl_setpipe_size(&write, PIPE_BYTES)?;
        Ok(Self { read, write })
    }
}

impl BorrowedPipe<'_> {
    /// Gives back a pipe that is empty again.
    fn give_back(self) {
        let mut idle = self.home.idle.borrow_mut();
        debug_assert!(Rc::strong_count(&self.pipe) == 1, "a pipe in use is kept as well");
        if idle.len() < KEPT_PIPES {
            idle.push(Rc::clone(&self.pipe));
        }
    }
}

impl Drop for BorrowedPipe<'_> {
    fn drop(&mut self) {
        debug_assert!(self.home.in_use.get() > 0, "a pipe that nobody has taken is closed");
        self.home.in_use.set(self.home.in_use.get() - 1);
    }
}

/// Waits for the next bytes of `stream` and moves them. Returns `None` if they must be read
/// instead: they are few, the kernel cannot move them, or no pipe is free.
pub(crate) async fn pass_on(
    io: &Io,
    pipes: &Pipes,
    pace: &mut Pace,
    stream: &mut dyn BodyStream,
) -> io::Result<Option<u64>> {
    if stream.spliceable() < MIN_BYTES {
        return Ok(None);
    }
    let Some((pipe, moved)) = poll_fn(|context| poll_fill(pipes, stream, context)).await? else {
        return Ok(None);
    };
    io.begin_wait(pace);
    let mut left = moved;
    while left > 0 {
        let sent = poll_fn(|context| io.poll_splice(context, pipe.pipe.read.as_fd(), left)).await?;
        if sent == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        left = left.saturating_sub(sent);
        io.progress(pace, sent);
    }
    io.end_wait(pace);
    pipe.give_back();
    Ok(Some(moved as u64))
}

/// Has a pipe filled. No pipe is held while nothing can fill it.
fn poll_fill<'a>(
    pipes: &'a Pipes,
    stream: &mut dyn BodyStream,
    context: &mut Context<'_>,
) -> Poll<io::Result<Option<(BorrowedPipe<'a>, usize)>>> {
    let Some(pipe) = pipes.take() else { return Poll::Ready(Ok(None)) };
    match stream.poll_splice(context, pipe.pipe.write.as_fd(), PIPE_BYTES) {
        Poll::Ready(Ok(count)) => Poll::Ready(Ok(Some((pipe, count)))),
        Poll::Ready(Err(error)) => Poll::Ready(Err(io::Error::other(error))),
        Poll::Pending => {
            pipe.give_back();
            Poll::Pending
        }
    }
}
