//! A client's socket in the form that the h2 crate wants.
//!
//! h2 writes and flushes after each DATA frame. Its bytes are gathered here, and the connection
//! sends them when it has nothing more to do. So the responses to all requests that came together
//! leave in one write and one TLS record.

use std::cell::{Cell, RefCell};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use kirin_client_bytes::{ClientShare, NoRoom, Reservation, Resource};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::frame_budget::FrameBudget;
use crate::connection::io::Io;

/// Bytes that may wait in h2 without being counted.
const UNCOUNTED_BYTES: usize = 64 * 1024;

/// Bytes that are gathered before they are sent: two full TLS records.
const GATHERED_BYTES: usize = 32 * 1024;

thread_local! {
    /// The memory of a connection that has sent everything, for the next connection on this loop
    /// that has something to send.
    static SPARE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Response bytes that the streams of a connection have handed over and h2 has not written yet. If
/// there are more than [`UNCOUNTED_BYTES`], they are counted for the client, which reads too
/// slowly.
#[derive(Debug)]
pub(super) struct Backlog {
    bytes: Cell<usize>,
    share: ClientShare,
    reserved: RefCell<Option<Reservation>>,
}

impl Backlog {
    pub(super) fn new(share: ClientShare) -> Self {
        Self { bytes: Cell::new(0), share, reserved: RefCell::default() }
    }

    /// Notes that `bytes` were handed over.
    pub(super) fn add(&self, bytes: usize) -> Result<(), NoRoom> {
        let all = self.bytes.get() + bytes;
        if all > UNCOUNTED_BYTES {
            let counted = all.next_multiple_of(UNCOUNTED_BYTES) as u64;
            let mut reserved = self.reserved.borrow_mut();
            match &mut *reserved {
                Some(reserved) if reserved.bytes() >= counted => {}
                Some(reserved) => reserved.resize(counted)?,
                None => *reserved = Some(self.share.reserve(Resource::Memory, counted)?),
            }
        }
        self.bytes.set(all);
        debug_assert!(self.is_counted(), "{all} bytes that wait are not counted");
        Ok(())
    }

    /// Returns whether bytes are counted for the client, all of them, exactly if they are many.
    fn is_counted(&self) -> bool {
        let bytes = self.bytes.get();
        match &*self.reserved.borrow() {
            Some(reserved) => bytes > UNCOUNTED_BYTES && reserved.bytes() >= bytes as u64,
            None => bytes <= UNCOUNTED_BYTES,
        }
    }

    /// Notes that h2 has written `bytes`, including heads and frame headers.
    fn remove(&self, bytes: usize) {
        let left = self.bytes.get().saturating_sub(bytes);
        let was_counted = self.bytes.replace(left) > UNCOUNTED_BYTES;
        if was_counted && left <= UNCOUNTED_BYTES {
            self.reserved.replace(None);
        }
        debug_assert!(self.is_counted(), "{left} bytes wait, and others are counted");
    }
}

/// The socket of a connection. It first gives the bytes that were read before the connection turned
/// out to be HTTP/2. The connection's task and h2 have one copy each.
#[derive(Clone)]
pub(super) struct Http2Socket {
    io: Rc<Io>,
    state: Rc<SocketState>,
    backlog: Rc<Backlog>,
}

struct SocketState {
    gathered: RefCell<Gathered>,
    /// Limits the frames that ask for nothing.
    budget: RefCell<FrameBudget>,
    /// Whether the client has sent too many of them. Then nothing more is read.
    flooded: Cell<bool>,
    /// Whether the client took nothing when we last tried to send.
    stalled: Cell<bool>,
    /// Whether the client has taken bytes since the last call of `take_progress`.
    progress: Cell<bool>,
    /// Whether there was nothing more to read since the task last waited.
    drained: Cell<bool>,
}

/// Bytes to be sent. It has no memory while there are none.
#[derive(Default)]
struct Gathered {
    bytes: Vec<u8>,
    sent: usize,
}

impl Http2Socket {
    pub(super) fn new(io: &Rc<Io>, backlog: &Rc<Backlog>) -> Self {
        let state = SocketState {
            gathered: RefCell::default(),
            budget: RefCell::new(FrameBudget::new(super::PREFACE.len(), io.clock.now())),
            flooded: Cell::new(false),
            stalled: Cell::new(false),
            progress: Cell::new(false),
            drained: Cell::new(false),
        };
        let (io, backlog) = (Rc::clone(io), Rc::clone(backlog));
        Self { io, state: Rc::new(state), backlog }
    }

    /// Returns whether the client has sent too many frames that ask for nothing.
    pub(super) fn is_flooded(&self) -> bool {
        self.state.flooded.get()
    }

    /// Counts the frames that the client has sent.
    fn count_received(&self, bytes: &[u8]) {
        let is_within = self.state.budget.borrow_mut().receive(bytes, || self.io.clock.now());
        if !is_within {
            self.state.flooded.set(true);
        }
    }

    /// Returns whether the client took nothing when we last tried to send.
    pub(super) fn is_stalled(&self) -> bool {
        self.state.stalled.get()
    }

    /// Returns whether the client has taken bytes since the last call.
    pub(super) fn take_progress(&self) -> bool {
        self.state.progress.take()
    }

    /// Sends the gathered bytes, because the task has nothing more to do and will wait. Ready when
    /// the kernel has taken all of them.
    pub(super) fn poll_send_and_wait(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.state.drained.set(false);
        let result = self.poll_send(context);
        if result.is_ready() {
            // The streams hand over only as many bytes as the client's window allows, so h2 buffers
            // no data. It never writes the bytes that it dropped with a reset stream.
            self.backlog.remove(usize::MAX);
        }
        result
    }

    fn poll_send(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = self.poll_send_gathered(context);
        self.state.stalled.set(result.is_pending());
        result
    }

    fn poll_send_gathered(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut gathered = self.state.gathered.borrow_mut();
        while let Some(rest @ [_, ..]) = gathered.bytes.get(gathered.sent..) {
            let count = ready!(self.io.poll_write(context, rest))?;
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            gathered.sent += count;
            self.state.progress.set(true);
        }
        gathered.give_back();
        self.io.poll_flush(context)
    }

    /// Gathers as much of `slices` as there is room for. Sends gathered bytes to make room.
    fn poll_gather<'a>(
        &self,
        context: &mut Context<'_>,
        slices: impl Iterator<Item = &'a [u8]>,
    ) -> Poll<io::Result<usize>> {
        if self.state.gathered.borrow().room() == 0 {
            ready!(self.poll_send(context))?;
        }
        let mut gathered = self.state.gathered.borrow_mut();
        let mut budget = self.state.budget.borrow_mut();
        let taken = slices.map(|slice| {
            let taken = gathered.push(slice);
            budget.send(&slice[..taken]);
            taken
        });
        let count = taken.sum();
        self.backlog.remove(count);
        Poll::Ready(Ok(count))
    }
}

impl Gathered {
    fn room(&self) -> usize {
        GATHERED_BYTES - self.bytes.len().min(GATHERED_BYTES)
    }

    /// Takes as much of `slice` as there is room for. Returns how much.
    fn push(&mut self, slice: &[u8]) -> usize {
        if self.bytes.capacity() == 0 {
            self.bytes = SPARE.take();
            self.bytes.reserve_exact(GATHERED_BYTES);
        }
        let fits = slice.get(..self.room()).unwrap_or(slice);
        self.bytes.extend_from_slice(fits);
        debug_assert!(self.bytes.len() <= GATHERED_BYTES, "{} are gathered", self.bytes.len());
        fits.len()
    }

    /// Gives the memory to the next connection that needs it, when all bytes were sent.
    fn give_back(&mut self) {
        let mut bytes = std::mem::take(&mut self.bytes);
        debug_assert!(self.sent >= bytes.len(), "{} of {} are sent", self.sent, bytes.len());
        self.sent = 0;
        if bytes.capacity() > 0 {
            bytes.clear();
            SPARE.set(bytes);
        }
    }
}

impl AsyncRead for Http2Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut unread = self.io.unread.borrow_mut();
        if !unread.is_empty() {
            let fits = unread.len().min(buffer.remaining());
            self.count_received(&unread[..fits]);
            buffer.put_slice(&unread[..fits]);
            unread.drain(..fits);
            if unread.is_empty() {
                *unread = Vec::new();
            }
            return Poll::Ready(Ok(()));
        }
        // h2 asks again for each request that it gives out. The task will be woken already.
        if self.state.drained.get() || self.is_flooded() {
            return Poll::Pending;
        }
        let before = buffer.filled().len();
        let result = self.io.poll_read_into(context, buffer);
        self.count_received(&buffer.filled()[before..]);
        self.state.drained.set(result.is_pending());
        result
    }
}

impl AsyncWrite for Http2Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_gather(context, std::iter::once(bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_gather(context, slices.iter().map(|slice| &slice[..]))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// Does nothing: the connection's task sends when h2 has written all frames.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_send(context))?;
        self.io.shutdown_write();
        self.io.set_deadline(super::DISCONNECT_SECONDS);
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::io::Stream;
    use crate::limits::Limits;
    use crate::limits::deadlines::Deadlines;
    use kirin_http::peer::Peer;
    use std::future::poll_fn;
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    fn pair() -> (Http2Socket, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let stream = Stream::Unix(tokio::net::UnixStream::from_std(ours).unwrap());
        let deadlines = Rc::new(Deadlines::new(&Limits::default(), Rc::default()));
        let backlog = Rc::new(Backlog::new(ClientShare::default()));
        (Http2Socket::new(&Rc::new(Io::new(stream, Peer::Unix, &deadlines)), &backlog), theirs)
    }

    fn write(socket: &mut Http2Socket, context: &mut Context<'_>, bytes: &[u8]) -> Poll<usize> {
        let slices =
            [IoSlice::new(&bytes[..bytes.len() / 3]), IoSlice::new(&bytes[bytes.len() / 3..])];
        Pin::new(socket).poll_write_vectored(context, &slices).map(Result::unwrap)
    }

    #[tokio::test]
    async fn flushed_bytes_are_sent_when_the_task_waits() {
        let (mut socket, mut other_end) = pair();
        poll_fn(|context| {
            for answer in [&b"one "[..], b"two ", b"three"] {
                assert_eq!(write(&mut socket, context, answer), Poll::Ready(answer.len()));
                assert!(Pin::new(&mut socket).poll_flush(context).is_ready());
            }
            assert!(!socket.take_progress());
            Poll::Ready(())
        })
        .await;
        poll_fn(|context| socket.poll_send_and_wait(context)).await.unwrap();
        assert!(socket.take_progress() && !socket.take_progress());
        let mut received = [0; 64];
        let count = other_end.read(&mut received).unwrap();
        assert_eq!(&received[..count], b"one two three");
    }

    #[tokio::test]
    async fn unread_bytes_take_little_memory_and_arrive_in_order() {
        let (mut socket, other_end) = pair();
        let sent: Vec<u8> = (0..4_000_000_u32).map(|index| (index / 7).to_le_bytes()[0]).collect();
        let mut at = 0;
        let mut reader = None;
        poll_fn(|context| {
            while at < sent.len() {
                let end = sent.len().min(at + 100_000);
                let Poll::Ready(count) = write(&mut socket, context, &sent[at..end]) else {
                    assert!(socket.is_stalled());
                    reader.get_or_insert_with(|| {
                        let mut other_end = other_end.try_clone().unwrap();
                        std::thread::spawn(move || {
                            let mut received = Vec::new();
                            other_end.read_to_end(&mut received).map(|_| received)
                        })
                    });
                    return Poll::Pending;
                };
                at += count;
                let capacity = socket.state.gathered.borrow().bytes.capacity();
                assert!(capacity <= GATHERED_BYTES, "{capacity}");
            }
            Poll::Ready(())
        })
        .await;
        poll_fn(|context| Pin::new(&mut socket).poll_shutdown(context)).await.unwrap();
        assert_eq!(socket.state.gathered.borrow().bytes.capacity(), 0);
        let received = reader.expect("the socket takes less than all").join().unwrap().unwrap();
        assert!(received == sent, "{}", received.len());
    }
}
