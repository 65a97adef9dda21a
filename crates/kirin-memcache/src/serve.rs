//! Accepts clients on an event loop and serves them there.
//!
//! [`serve`] is spawned once for each listener on each loop.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, Waker, ready};
use std::time::{Duration, Instant};

use kirin_faults::{Errno, Point};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{Notify, mpsc};
use tokio::task::AbortHandle;

use crate::connection::{CloseReason, Connection, LoopBuffers};
use crate::counters::{add, read};
use crate::execute::Executor;
use crate::server::MemcachedServer;
use crate::session::{MemcachedSession, SessionEnding};
use crate::watch::event::WatchedPeer;

static ACCEPT: Point = Point::new("memcached.accept", &[Errno::CONNABORTED, Errno::MFILE]);

/// The pause in accepting if the process has no file descriptor or memory for a connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The shortest time between two warnings about such pauses.
const WARNING_INTERVAL: Duration = Duration::from_secs(10);

/// A bound socket of either kind.
#[derive(Debug)]
pub enum MemcachedSocket {
    /// A TCP socket.
    Tcp(TcpListener),
    /// A unix socket.
    Unix(UnixListener),
}

/// An accepted socket of either kind.
enum Accepted {
    Tcp(TcpStream, SocketAddr),
    Unix(UnixStream),
}

impl MemcachedSocket {
    /// Accepts a client, but not during a pause. Clients then wait in the socket, which another
    /// process may have as well.
    async fn accept(&self, server: &MemcachedServer) -> io::Result<Accepted> {
        poll_fn(|cx| {
            ready!(server.poll_unpaused(cx));
            ready!(ACCEPT.poll(cx))?;
            Poll::Ready(match self {
                MemcachedSocket::Tcp(listener) => {
                    let accepted = ready!(listener.poll_accept(cx));
                    accepted.map(|(stream, peer)| Accepted::Tcp(stream, peer))
                }
                MemcachedSocket::Unix(listener) => {
                    ready!(listener.poll_accept(cx)).map(|(stream, _)| Accepted::Unix(stream))
                }
            })
        })
        .await
    }
}

/// Serves the clients of `listener` until `shutdown` completes, then closes their connections. If
/// another process serves them from then on, they leave to it, and those in the middle of a command
/// do so after it.
///
/// The caller must run it where `spawn_local` works.
pub async fn serve(
    listener: MemcachedSocket,
    server: Arc<MemcachedServer>,
    shutdown: impl Future<Output = ()>,
) {
    let place = ServingPlace::new(server);
    let server = place.executor.server();
    let mut shutdown = pin!(shutdown);
    let mut warned_at: Option<Instant> = None;
    let mut has_successor = false;
    loop {
        let accepted = tokio::select! {
            // A client that comes then is left to another process.
            biased;
            () = &mut shutdown => break,
            () = server.successor_comes(), if !has_successor => {
                has_successor = true;
                place.open.wake_all();
                continue;
            }
            accepted = listener.accept(server) => accepted,
        };
        match accepted {
            // A panic in admitting one connection must not end the accepting of others.
            Ok(accepted) => {
                let new = MemcachedSession::default;
                _ = catch_unwind(AssertUnwindSafe(|| place.admit(accepted, new())));
            }
            Err(error) if is_of_one_connection(&error) => {}
            Err(error) => {
                add(&place.executor.counters().listen_disabled_num, 1);
                if warned_at.is_none_or(|at| at.elapsed() >= WARNING_INTERVAL) {
                    warned_at = Some(Instant::now());
                    tracing::warn!(%error, "cannot accept memcached clients, pausing");
                }
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    match server.has_successor() {
        true => place.open.leave_all().await,
        false => place.open.close_all(),
    }
}

/// Serves the clients whose sockets another process has handed over, until they leave to the next
/// one.
///
/// The caller must run it where `spawn_local` works.
pub async fn serve_adopted(
    server: Arc<MemcachedServer>,
    mut clients: mpsc::UnboundedReceiver<OwnedFd>,
) {
    let mut place = None;
    let mut is_closed = false;
    loop {
        tokio::select! {
            client = clients.recv(), if !is_closed => {
                // The process has ended. Its clients stay until they can go to the next one.
                let Some(client) = client else {
                    is_closed = true;
                    continue;
                };
                let place = place.get_or_insert_with(|| ServingPlace::new(Arc::clone(&server)));
                match Accepted::from_descriptor(client) {
                    Ok(accepted) => place.admit(accepted, MemcachedSession::begun()),
                    // It has disconnected meanwhile.
                    Err(error) => tracing::debug!(%error, "a memcached client is lost"),
                }
            }
            () = server.successor_comes() => break,
        }
    }
    if let Some(place) = place {
        place.open.leave_all().await;
    }
}

/// What the connections of a listener on an event loop share.
struct ServingPlace {
    executor: Rc<Executor>,
    buffers: Rc<LoopBuffers>,
    open: Rc<ConnectionTasks>,
}

impl ServingPlace {
    fn new(server: Arc<MemcachedServer>) -> Self {
        Self {
            executor: Rc::new(Executor::new(server)),
            buffers: Rc::new(LoopBuffers::new()),
            open: Rc::default(),
        }
    }

    fn admit(&self, accepted: Accepted, session: MemcachedSession) {
        admit(accepted, session, &self.executor, &self.buffers, &self.open);
    }
}

impl Accepted {
    /// Takes over the socket of a client. Must be called on an event loop.
    fn from_descriptor(client: OwnedFd) -> io::Result<Self> {
        let family = rustix::net::getsockname(&client)?.address_family();
        if family == rustix::net::AddressFamily::UNIX {
            let stream = std::os::unix::net::UnixStream::from(client);
            stream.set_nonblocking(true)?;
            return Ok(Self::Unix(UnixStream::from_std(stream)?));
        }
        let stream = std::net::TcpStream::from(client);
        let peer = stream.peer_addr()?;
        stream.set_nonblocking(true)?;
        Ok(Self::Tcp(TcpStream::from_std(stream)?, peer))
    }
}

/// Starts to serve a client, unless there are too many.
fn admit(
    accepted: Accepted,
    session: MemcachedSession,
    executor: &Rc<Executor>,
    buffers: &Rc<LoopBuffers>,
    open: &Rc<ConnectionTasks>,
) {
    let server = executor.server();
    if !server.admit_connection() {
        return refuse(accepted, executor);
    }
    add(&executor.counters().total_connections, 1);
    let slot = ConnectionSlot {
        number: open.take(),
        open: Rc::clone(open),
        executor: Rc::clone(executor),
    };
    let (number, buffers) = (slot.number, Rc::clone(buffers));
    let task = match accepted {
        Accepted::Tcp(stream, address) => {
            if let Err(error) = stream.set_nodelay(true) {
                tracing::debug!(%error, "cannot set TCP_NODELAY");
            }
            tokio::task::spawn_local(serve_client(
                stream,
                session,
                WatchedPeer::Tcp(address),
                slot,
                buffers,
            ))
        }
        Accepted::Unix(stream) => tokio::task::spawn_local(serve_client(
            stream,
            session,
            WatchedPeer::Unix,
            slot,
            buffers,
        )),
    };
    open.enter(number, task.abort_handle());
}

/// The tasks of a loop's connections, which end with the loop. A `JoinSet` does the same with 100
/// bytes for each connection, this with 32.
#[derive(Debug, Default)]
struct ConnectionTasks {
    tasks: RefCell<Vec<ConnectionTask>>,
    vacant: RefCell<Vec<usize>>,
    /// Notified when a task has left.
    left: Notify,
}

/// The task of a connection.
#[derive(Debug, Default)]
struct ConnectionTask {
    abort: Option<AbortHandle>,
    /// Wakes the task when it has to leave.
    waker: Option<Waker>,
}

impl ConnectionTasks {
    /// Returns the number of a free slot.
    fn take(&self) -> usize {
        self.vacant.borrow_mut().pop().unwrap_or_else(|| {
            let mut tasks = self.tasks.borrow_mut();
            tasks.push(ConnectionTask::default());
            tasks.len() - 1
        })
    }

    fn enter(&self, number: usize, task: AbortHandle) {
        if let Some(place) = self.tasks.borrow_mut().get_mut(number) {
            place.abort = Some(task);
        }
    }

    /// Notes how the task of a connection is woken. It stays the same.
    fn note_waker(&self, number: usize, waker: &Waker) {
        if let Some(place) = self.tasks.borrow_mut().get_mut(number) {
            place.waker = Some(waker.clone());
        }
    }

    fn leave(&self, number: usize) {
        let left = self.tasks.borrow_mut().get_mut(number).map(std::mem::take);
        self.vacant.borrow_mut().push(number);
        // The task must not be dropped while the list is borrowed, because this may be its last
        // reference.
        drop(left);
        self.left.notify_one();
    }

    /// Returns the number of open connections.
    fn open(&self) -> usize {
        self.tasks.borrow().len().saturating_sub(self.vacant.borrow().len())
    }

    /// Has all connections leave, those in the middle of a command after it, and waits until they
    /// have.
    async fn leave_all(&self) {
        self.wake_all();
        while self.open() > 0 {
            self.left.notified().await;
        }
    }

    /// Wakes all connections, so that they look whether they have to leave.
    fn wake_all(&self) {
        self.tasks
            .borrow()
            .iter()
            .filter_map(|task| task.waker.as_ref())
            .for_each(Waker::wake_by_ref);
    }

    fn close_all(&self) {
        let tasks = std::mem::take(&mut *self.tasks.borrow_mut());
        tasks.into_iter().filter_map(|task| task.abort).for_each(|task| task.abort());
    }
}

/// The slot of a connection, held as long as the connection lives.
struct ConnectionSlot {
    number: usize,
    open: Rc<ConnectionTasks>,
    executor: Rc<Executor>,
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.open.leave(self.number);
        self.executor.server().release_connection();
    }
}

async fn serve_client<S: AsyncRead + AsyncWrite + AsRawFd + AsFd + Unpin>(
    stream: S,
    session: MemcachedSession,
    peer: WatchedPeer,
    slot: ConnectionSlot,
    buffers: Rc<LoopBuffers>,
) {
    let descriptor = stream.as_raw_fd();
    slot.executor.note_opened(peer, descriptor);
    poll_fn(|cx| {
        slot.open.note_waker(slot.number, cx.waker());
        Poll::Ready(())
    })
    .await;
    let mut connection = Connection::new(stream, session);
    let closed = connection.run(&slot.executor, &buffers).await;
    if matches!(closed, CloseReason::GivenAway) {
        match connection.stream().as_fd().try_clone_to_owned() {
            Ok(socket) => slot.executor.server().give_away(socket),
            Err(error) => tracing::warn!(%error, "a memcached client has to connect again"),
        }
    }
    slot.executor.note_closed(peer, closed.word(), descriptor);
    match &closed {
        CloseReason::ByClient | CloseReason::Ended(SessionEnding::Quit) => {}
        // A client with the wrong protocol sees only closed connections, so the log must give the
        // reason.
        CloseReason::Ended(SessionEnding::Binary) => {
            tracing::warn!("memcached client refused: {closed}")
        }
        _ if slot.executor.server().verbosity() > 0 => {
            tracing::info!("memcached connection closed: {closed}")
        }
        _ => {}
    }
}

/// Tells a client in memcached's words that there are too many connections.
fn refuse(accepted: Accepted, executor: &Executor) {
    let rejected = &executor.counters().rejected_connections;
    add(rejected, 1);
    if read(rejected) == 1 {
        tracing::warn!(
            limit = executor.server().options().connection_limit,
            "memcached connection limit reached"
        );
    }
    const LINE: &[u8] = b"ERROR Too many open connections\r\n";
    // The socket's buffer is empty, so the line fits at once. If not, the client has disconnected.
    let sent = match accepted {
        Accepted::Tcp(stream, _) => stream.into_std().and_then(|mut stream| stream.write(LINE)),
        Accepted::Unix(stream) => stream.into_std().and_then(|mut stream| stream.write(LINE)),
    };
    if let Err(error) = sent {
        tracing::debug!(%error, "a refused memcached client was gone already");
    }
}

/// Returns whether an error of `accept` concerns one connection only (accept(2), "Error handling").
fn is_of_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionRefused
    )
}
