//! Bodies that the kernel moves from a server's socket to the client's (splice(2)), so that no byte
//! of them passes through our memory. `sending` does so with streams that can
//! ([`BodyStream::spliceable`]) and clients that take them as they are: not over TLS, not in
//! chunks, not over HTTP/2.
//!
//! Between the two sockets there is a pipe. A response has one only while something is in it: those
//! that wait for their server have none, and a loop has few.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use std::task::{Context, Poll};

use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};

use crate::connection::io::Io;
use kirin_http::body::BodyStream;
use kirin_http::pace::Pace;

/// What is shorter is read and written: a pipe makes two system calls of each, too.
const MIN_BYTES: u64 = 64 * 1024;

/// What one pipe holds at most, which is what a slow reader keeps in the kernel. In pages, of which
/// a user without privileges may have 64 MB in pipes.
const PIPE_BYTES: usize = 256 * 1024;

/// Pipes in use, of one listener on one loop. Who comes when there are so many copies.
const MAX_PIPES: usize = 64;

/// Pipes that are kept for the next response.
const KEPT_PIPES: usize = 8;

/// The pipes of one listener on one loop.
#[derive(Default)]
pub(crate) struct Pipes {
    idle: RefCell<Vec<Rc<Pipe>>>,
    lent: Cell<usize>,
}

struct Pipe {
    read: OwnedFd,
    write: OwnedFd,
}

/// A pipe that is in use. Closed when dropped, as something may be left in it.
struct Lent<'a> {
    pipe: Rc<Pipe>,
    home: &'a Pipes,
}

impl Pipes {
    /// An empty one; none if there are too many.
    fn take(&self) -> Option<Lent<'_>> {
        if self.lent.get() == MAX_PIPES {
            return None;
        }
        let idle = self.idle.borrow_mut().pop();
        let pipe = match idle {
            Some(pipe) => pipe,
            None => Rc::new(Pipe::new().ok()?),
        };
        self.lent.set(self.lent.get() + 1);
        Some(Lent { pipe, home: self })
    }
}

impl Pipe {
    /// Of full size: a user who has too many gets small ones, which are no gain.
    fn new() -> io::Result<Self> {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        fcntl_setpipe_size(&write, PIPE_BYTES)?;
        Ok(Self { read, write })
    }
}

impl Lent<'_> {
    /// It is empty again.
    fn give_back(self) {
        let mut idle = self.home.idle.borrow_mut();
        if idle.len() < KEPT_PIPES {
            idle.push(Rc::clone(&self.pipe));
        }
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        self.home.lent.set(self.home.lent.get() - 1);
    }
}

/// Waits for the next bytes of `stream` and passes them on. `None` if they are to be read: they are
/// few, of a kind that the kernel cannot move, or there is no pipe.
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

/// Has a pipe filled; holds none while there is nothing to fill it with.
fn poll_fill<'a>(
    pipes: &'a Pipes,
    stream: &mut dyn BodyStream,
    context: &mut Context<'_>,
) -> Poll<io::Result<Option<(Lent<'a>, usize)>>> {
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
