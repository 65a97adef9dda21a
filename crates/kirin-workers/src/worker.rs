//! The connection to one worker. Only this file reads from and writes to workers.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::thread::ThreadId;
use std::time::Instant;

use bytes::{BufMut, BytesMut};
use kirin_cgi::RequestBlock;
use kirin_faults::{Errno, Point};
use kirin_http::ReadBuffer;
use rustix::net::Shutdown;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, Interest, ReadBuf};
use tokio::net::UnixStream;
use tokio::sync::mpsc::UnboundedSender;

use crate::descriptor_message;
use crate::event::Event;
use crate::greeting::{self, Greeting, MAX_GREETING_BYTES};
use crate::ring::{self, Parked, RingOwner, RingPlace, RingSeat, SharedRing};
use crate::worker_handle::WorkerHandle;
use crate::worker_process::WorkerProcess;

static CONNECT: Point =
    Point::new("worker.connect", &[Errno::AGAIN, Errno::MFILE, Errno::CONNREFUSED]);
static READ: Point = Point::new("worker.read", &[Errno::IO]);
static WRITE: Point = Point::new("worker.write", &[Errno::PIPE, Errno::CONNRESET]);

/// Bytes read from a worker at once. No response head may be longer.
pub(crate) const BUFFER_BYTES: usize = 64 * 1024;

/// A generation's place for one worker. When its connection is dropped, the supervisor gets an
/// event and opens another one.
pub(crate) struct Vacancy {
    pub(crate) generation: u64,
    pub(crate) index: usize,
    pub(crate) lost: UnboundedSender<Event>,
}

impl Drop for Vacancy {
    fn drop(&mut self) {
        // Nobody receives this while the application is being stopped.
        let _ = self.lost.send(Event::Lost { generation: self.generation, vacancy: self.index });
    }
}

/// A connection to a worker. Its holder has the worker for itself.
pub(crate) struct WorkerConnection {
    stream: UnixStream,
    buffer: ReadBuffer,
    /// The thread of the event loop with which the socket is registered. Using it on another loop
    /// costs a wake-up.
    home: ThreadId,
    pub(crate) handle: Arc<WorkerHandle>,
    /// The worker's seat, if it is attached to the ring of its generation.
    pub(crate) seat: Option<Seat>,
    /// The place of the request that goes on over this connection.
    pub(crate) place: Option<Place>,
    /// Whether the worker has a request over this connection.
    has_request: bool,
    vacancy: Vacancy,
}

/// The ring of a generation.
pub(crate) type Ring = SharedRing<WorkerConnection>;

/// The right to put a request into a ring.
pub(crate) type Place = RingPlace<WorkerConnection>;

/// A worker's number in a ring.
type Seat = RingSeat<WorkerConnection>;

impl Parked for WorkerConnection {
    fn handle(&self) -> &Arc<WorkerHandle> {
        &self.handle
    }

    fn place(&mut self) -> &mut Option<Place> {
        &mut self.place
    }
}

impl Drop for WorkerConnection {
    /// Ends the connection. Dropping the stream is not enough, because the handle keeps the socket
    /// open.
    fn drop(&mut self) {
        // A worker that waits at the ring does not see the end of its connection.
        if let Some(seat) = &self.seat {
            seat.ring.dismiss(seat.number, &self.handle);
        }
        self.end_request();
        self.handle.disconnect();
    }
}

impl WorkerConnection {
    /// Returns the connection in `vacancy`. Call this on the loop that becomes its home.
    pub(crate) fn new(
        worker: GreetedWorker,
        process: Arc<WorkerProcess>,
        vacancy: Vacancy,
    ) -> Self {
        let GreetedWorker { stream, socket, seat, .. } = worker;
        Self {
            stream,
            buffer: ReadBuffer::new(vec![0; BUFFER_BYTES].into_boxed_slice()),
            home: std::thread::current().id(),
            handle: Arc::new(WorkerHandle::new(process, socket)),
            seat,
            place: None,
            has_request: false,
            vacancy,
        }
    }

    /// Returns the number of the connection's vacancy.
    pub(crate) fn vacancy(&self) -> usize {
        self.vacancy.index
    }

    /// Notes the request that the worker gets over this connection, or has got through the ring.
    pub(crate) fn begin_request(&mut self, block: &RequestBlock, begun_at: Instant) {
        self.handle.current.begin(block, begun_at);
        self.has_request = true;
        self.handle.process.begin_request();
    }

    /// Notes that the worker has no request over this connection any more.
    pub(crate) fn end_request(&mut self) {
        self.handle.current.end();
        if std::mem::take(&mut self.has_request) {
            self.handle.process.end_request();
        }
    }

    /// Returns the thread of the event loop with which the socket is registered.
    pub(crate) fn home(&self) -> ThreadId {
        self.home
    }

    /// Returns whether the worker waits for a request: nothing has arrived, not even the end. Makes
    /// no system call while that is so.
    fn poll_is_waiting(&mut self, context: &mut Context<'_>) -> Poll<bool> {
        loop {
            match self.stream.poll_read_ready(context) {
                Poll::Pending => return Poll::Ready(self.buffer.is_empty()),
                Poll::Ready(Err(_)) => return Poll::Ready(false),
                // The socket may look ready after a read that took exactly what was there.
                Poll::Ready(Ok(())) => match self.stream.try_read(&mut [0]) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    _ => return Poll::Ready(false),
                },
            }
        }
    }

    /// Returns whether the worker waits for a request. It may have ended while it was idle.
    pub(crate) async fn is_waiting(&mut self) -> bool {
        poll_fn(|context| self.poll_is_waiting(context)).await
    }

    pub(crate) fn poll_write_vectored(
        &mut self,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(WRITE.poll(context))?;
        let slices = &slices[..WRITE.shorten(slices.len())];
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    /// Tells the worker that nothing more will be sent.
    pub(crate) fn end_writing(&self) {
        // Fails only if the worker has gone already.
        let _ = rustix::net::shutdown(self.handle.socket(), Shutdown::Write);
    }

    /// Copies a part of `file` to the worker inside the kernel. Returns 0 at the end of the file.
    pub(crate) async fn send_file(
        &self,
        file: &std::fs::File,
        offset: &mut u64,
        count: usize,
    ) -> io::Result<usize> {
        WRITE.pass()?;
        let count = WRITE.shorten(count);
        let send = || Ok(rustix::fs::sendfile(&self.stream, file, Some(&mut *offset), count)?);
        self.stream.async_io(Interest::WRITABLE, send).await
    }

    /// Sends `bytes`, and a descriptor with the first of them. Returns how many bytes were sent.
    pub(crate) async fn send_with_descriptor(
        &self,
        bytes: &[u8],
        descriptor: BorrowedFd<'_>,
    ) -> io::Result<usize> {
        WRITE.pass()?;
        descriptor_message::send(&self.stream, bytes, &[descriptor]).await
    }

    /// Appends to the buffer, which must not be full. Returns 0 at the end.
    ///
    /// A short read tells tokio that the socket is empty, so that no second `read` is needed.
    pub(crate) fn poll_fill(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        ready!(READ.poll(context))?;
        let room = self.buffer.room();
        let most = READ.shorten(room.len());
        let mut read = ReadBuf::new(&mut room[..most]);
        debug_assert!(read.remaining() > 0, "a full buffer reads as the end");
        ready!(Pin::new(&mut self.stream).poll_read(context, &mut read))?;
        let count = read.filled().len();
        self.buffer.add(count);
        Poll::Ready(Ok(count))
    }

    /// Reads into the caller's memory, if nothing is buffered. Returns 0 at the end.
    pub(crate) fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        into: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        debug_assert!(self.buffer.is_empty(), "what is buffered comes first");
        ready!(READ.poll(context))?;
        let most = READ.shorten(into.len());
        let mut read = ReadBuf::new(&mut into[..most]);
        ready!(Pin::new(&mut self.stream).poll_read(context, &mut read))?;
        Poll::Ready(Ok(read.filled().len()))
    }

    /// Appends up to `most` bytes to the caller's memory, if nothing is buffered. Returns 0 at the
    /// end. The memory need not be initialised: zeros for a megabyte take as long as half a copy.
    pub(crate) async fn read_more(
        &mut self,
        data: &mut BytesMut,
        most: usize,
    ) -> io::Result<usize> {
        debug_assert!(self.buffer.is_empty(), "what is buffered comes first");
        READ.pass()?;
        self.stream.read_buf(&mut data.limit(READ.shorten(most))).await
    }

    /// Returns the buffer that [`WorkerConnection::poll_fill`] reads into.
    pub(crate) fn buffer(&mut self) -> &mut ReadBuffer {
        &mut self.buffer
    }

    /// Frees the memory of the buffer, if nothing is in it. From then on only
    /// [`WorkerConnection::poll_read`] reads.
    pub(crate) fn give_up_buffer(&mut self) {
        if self.buffer.is_empty() {
            self.buffer.take_memory();
        }
    }

    /// Returns the bytes that have been read and not been used.
    pub(crate) fn buffered(&self) -> &[u8] {
        self.buffer.unused()
    }

    /// Marks the first `count` bytes of what is buffered as used.
    pub(crate) fn consume(&mut self, count: usize) {
        self.buffer.consume(count);
    }

    pub(crate) fn buffer_is_full(&self) -> bool {
        self.buffer.is_full()
    }
}

/// A worker that has taken a connection and sent its greeting.
pub(crate) struct GreetedWorker {
    pub(crate) greeting: Greeting,
    stream: UnixStream,
    socket: OwnedFd,
    seat: Option<Seat>,
}

/// Connects, and waits until a worker has taken the connection. Offers the ring to a worker that
/// can use it.
pub(crate) async fn connect(
    app: &impl RingOwner<WorkerConnection>,
    ring: Option<&Arc<Ring>>,
    socket: &Path,
) -> io::Result<GreetedWorker> {
    CONNECT.pass()?;
    let mut stream = UnixStream::connect(socket).await?;
    let mut line = Vec::with_capacity(MAX_GREETING_BYTES);
    loop {
        match stream.read_u8().await? {
            b'\n' => break,
            byte => line.push(byte),
        }
        if line.len() > MAX_GREETING_BYTES {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "greeting is too long"));
        }
    }
    let greeting = greeting::parse(&String::from_utf8_lossy(&line))
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    let seat = match ring {
        Some(ring) if greeting.knows_ring && greeting.connections == 1 => {
            ring::offer(app, ring, &mut stream, greeting.pid).await?
        }
        _ => None,
    };
    let socket = stream.as_fd().try_clone_to_owned()?;
    Ok(GreetedWorker { greeting, stream, socket, seat })
}
