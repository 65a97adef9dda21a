//! Listening sockets: binds them, accepts connections on an event loop, and ends connections.

use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

use kirin_http::handler::Handler;
use kirin_http::listen_address::ListenAddress;
use kirin_http::panics;
use kirin_http::peer::Peer;
use kirin_sockets::deferred_accept::SILENCE;
use kirin_sockets::keepalive;
use rustix::fs::Mode;
use rustix::process::umask;
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use tokio::sync::mpsc;

use crate::connection::idle_connection::IdleConnection;
use crate::connection::io::Io;
use crate::http1::connection;
use crate::limits::admission::{AddressRefusal, ConnectionAdmission};
use crate::listening::accepting::{Accepted, Accepting};
use crate::server::{InForce, ListenerState, Server};

/// The most connections that wait to be accepted, unless [`BindOptions`] say otherwise. The kernel
/// limits it to net.core.somaxconn.
pub(super) const BACKLOG: i32 = 4096;

/// How long accepting pauses when the process or the machine has no file descriptor or memory left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How long an idle connection stays open for a last request when the program stops.
pub(crate) const LAST_REQUEST_TIME: Duration = Duration::from_secs(1);

/// How long a listener stays open when it closes for clients that have connected and sent nothing:
/// until the kernel has handed them over.
const SILENT_TIME: Duration = SILENCE.saturating_mul(2);

/// How often it is checked whether such clients are left.
const SILENT_CHECK_INTERVAL: Duration = Duration::from_millis(10);

/// How often connections that became idle are closed while the program stops.
const IDLE_CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// The reason why a listener cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// Another process listens there.
    #[error("{0} is in use by another process")]
    InUse(ListenAddress),
    /// Another process has the UDP port.
    #[error("the UDP port of {0}, which HTTP/3 needs, is in use by another process")]
    DatagramsInUse(ListenAddress),
    /// The kernel refused the UDP port.
    #[error("the UDP port of {0}, which HTTP/3 needs, cannot be bound: {1}")]
    Datagrams(ListenAddress, #[source] io::Error),
    /// The path exists and is not a socket.
    #[error("{0} exists and is not a socket; it is left alone")]
    NotASocket(ListenAddress),
    /// The kernel refused.
    #[error("cannot listen on {0}: {1}{hint}", hint = port_hint(.0, .1))]
    Io(ListenAddress, #[source] io::Error),
}

/// Returns what to do if a port is for root only (ip(7), `ip_unprivileged_port_start`).
fn port_hint(address: &ListenAddress, error: &io::Error) -> &'static str {
    match (address, error.kind()) {
        (ListenAddress::Tcp(tcp), io::ErrorKind::PermissionDenied) if tcp.port() < 1024 => {
            "; ports below 1024 are for root: start as root with `user`, get the socket from \
             systemd, or use another port"
        }
        _ => "",
    }
}

/// The options for binding a socket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BindOptions {
    /// The most connections that wait to be accepted. The kernel cuts it to net.core.somaxconn.
    pub backlog: Option<i32>,
    /// Whether an IPv6 socket takes no IPv4 connections, whatever the system's default is.
    pub only_v6: bool,
    /// The access mode of a unix socket. Without one, the umask of the process decides.
    pub unix_mode: Option<u32>,
}

/// A bound socket on which no event loop accepts yet.
pub enum Listener {
    /// A TCP socket.
    Tcp(std::net::TcpListener),
    /// A unix stream socket.
    Unix(std::os::unix::net::UnixListener, PathBuf),
}

impl Listener {
    /// Binds `address` once for each of `loops` event loops. With several loops, each gets a TCP
    /// socket of its own (SO_REUSEPORT, socket(7)), and the kernel distributes connections over
    /// them. All loops share a unix socket.
    pub fn bind(address: &ListenAddress, loops: usize) -> Result<Vec<Listener>, ListenError> {
        Self::bind_with(address, loops, &BindOptions::default())
    }

    /// Binds `address` as [`Listener::bind`] does. For a unix socket with a mode of its own, it
    /// changes the umask for a moment, so the process must have one thread then.
    pub fn bind_with(
        address: &ListenAddress,
        loops: usize,
        options: &BindOptions,
    ) -> Result<Vec<Listener>, ListenError> {
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::AddrInUse => ListenError::InUse(address.clone()),
            _ => ListenError::Io(address.clone(), error),
        };
        match address {
            ListenAddress::Tcp(wanted) => {
                // With SO_REUSEPORT, a second Kirin could bind the same port without an error. A
                // first bind without SO_REUSEPORT detects that. A port that the kernel chooses is
                // free, but another process could take it if it were released for a moment.
                let any_port = wanted.port() == 0;
                let first = bind_tcp(*wanted, any_port && loops > 1, options).map_err(failed)?;
                if loops < 2 {
                    return Ok(vec![Listener::Tcp(first)]);
                }
                let wanted = first.local_addr().map_err(failed)?;
                let mut listeners = Vec::with_capacity(loops);
                if any_port {
                    listeners.push(Listener::Tcp(first));
                } else {
                    drop(first);
                }
                while listeners.len() < loops {
                    listeners.push(Listener::Tcp(bind_tcp(wanted, true, options).map_err(failed)?));
                }
                Ok(listeners)
            }
            ListenAddress::Unix(path) => {
                remove_stale_socket(address, path)?;
                let bound = bind_unix(path, options).map_err(failed)?;
                bound.set_nonblocking(true).map_err(failed)?;
                let mut listeners = Vec::with_capacity(loops);
                for _ in 0..loops {
                    listeners
                        .push(Listener::Unix(bound.try_clone().map_err(failed)?, path.clone()));
                }
                Ok(listeners)
            }
        }
    }

    /// Returns the address as bound, with the port that the kernel chose.
    pub fn address(&self) -> io::Result<ListenAddress> {
        match self {
            Listener::Tcp(listener) => listener.local_addr().map(ListenAddress::Tcp),
            Listener::Unix(_, path) => Ok(ListenAddress::Unix(path.clone())),
        }
    }
}

fn bind_unix(path: &Path, options: &BindOptions) -> io::Result<std::os::unix::net::UnixListener> {
    // The mode is right from the start, so that no process connects before a chmod(2).
    let before = options.unix_mode.map(|mode| umask(Mode::from_raw_mode(!mode & 0o777)));
    let bound = std::os::unix::net::UnixListener::bind(path);
    before.map(umask);
    let bound = bound?;
    if let Some(backlog) = options.backlog {
        rustix::net::listen(&bound, backlog)?;
    }
    Ok(bound)
}

fn bind_tcp(
    address: SocketAddr,
    reuse_port: bool,
    options: &BindOptions,
) -> io::Result<std::net::TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(reuse_port)?;
    if options.only_v6 && address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    // Accepted sockets inherit both (tcp(7)), which saves a system call for each.
    socket.set_tcp_nodelay(true)?;
    keepalive::set(&socket)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(options.backlog.unwrap_or(BACKLOG))?;
    Ok(socket.into())
}

/// Removes a socket file on which no process listens: it is left over from a process that died.
fn remove_stale_socket(address: &ListenAddress, path: &Path) -> Result<(), ListenError> {
    let Ok(metadata) = std::fs::symlink_metadata(path) else { return Ok(()) };
    if !metadata.file_type().is_socket() {
        return Err(ListenError::NotASocket(address.clone()));
    }
    match std::os::unix::net::UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            std::fs::remove_file(path).map_err(|error| ListenError::Io(address.clone(), error))
        }
        _ => Err(ListenError::InUse(address.clone())),
    }
}

/// Accepts connections until the future is dropped, and serves each as a task of the current loop.
pub async fn accept<H: Handler>(listener: Listener, in_force: Rc<InForce<H>>) -> io::Result<()> {
    accept_until(listener, in_force, std::future::pending()).await
}

/// Accepts connections as [`accept`] does until `stop` completes. It also accepts the connections
/// that were made by then, because no other process would, unless one shares the socket.
///
/// `stop` returns how long it may wait for clients that have connected and sent nothing yet: zero
/// if another process accepts them.
pub async fn accept_until<H: Handler>(
    listener: Listener,
    in_force: Rc<InForce<H>>,
    stop: impl Future<Output = Duration>,
) -> io::Result<()> {
    let listener = Accepting::new(listener)?;
    let mut refused = OccasionalWarning::default();
    let mut serve = |accepted: Accepted| {
        let server = in_force.current();
        let mut io = match accepted.into_io(&server) {
            Ok(io) => io,
            Err(error) => {
                return tracing::debug!(address = %server.local, %error, "accept");
            }
        };
        io.permit = server.limits.admission.as_ref().map(ConnectionAdmission::admit);
        // A trusted proxy connects for many clients. The client that its PROXY header names is
        // counted later.
        server.counters.accepted.add();
        if !server.trusts(&io.peer) {
            match server.admit_address(&io) {
                Ok(()) => {}
                Err(AddressRefusal::TooMany) if refused.is_due(&server) => {
                    return tracing::warn!(address = %server.local, peer = %io.peer, "connections are refused: there are too many from one address");
                }
                Err(_) => return,
            }
        }
        spawn(&in_force, server, io);
    };
    let wait = tokio::select! {
        time = stop => time.min(SILENT_TIME),
        () = accept_connections(&listener, &in_force, &mut serve) => Duration::ZERO,
    };
    let ends = Instant::now() + wait;
    if !wait.is_zero() {
        // Responses say from now on that they are the last of their connections.
        in_force.current().state.stopping.set(true);
    }
    while Instant::now() < ends && listener.has_silent_clients() {
        let some = accept_connections(&listener, &in_force, &mut serve);
        _ = tokio::time::timeout(SILENT_CHECK_INTERVAL, some).await;
    }
    listener.accept_waiting().into_iter().for_each(serve);
    Ok(())
}

/// Serves a connection as a task of the current loop.
fn spawn<H: Handler>(in_force: &Rc<InForce<H>>, server: Rc<Server<H>>, io: Io) {
    let io = Rc::new(io);
    let connection = connection::run(Rc::clone(in_force), server, Rc::clone(&io));
    let task = tokio::task::spawn_local(connection).abort_handle();
    // It is set once, here.
    _ = io.task.set(task);
}

/// Goes on to serve a connection that another process has handed over. The settings are those of a
/// new connection. Closes it if they ask for TLS.
pub fn adopt<H: Handler>(in_force: &Rc<InForce<H>>, connection: IdleConnection) -> io::Result<()> {
    let IdleConnection { descriptor, announced, has_begun } = connection;
    let server = in_force.current();
    if server.tls.is_some() {
        return Ok(());
    }
    let peer = match server.local {
        ListenAddress::Tcp(_) => Peer::Tcp(
            SockRef::from(&descriptor)
                .peer_addr()?
                .as_socket()
                .ok_or(io::ErrorKind::NotConnected)?,
        ),
        ListenAddress::Unix(_) => Peer::Unix,
    };
    rustix::io::ioctl_fionbio(&descriptor, true)?;
    let mut io = Accepted { socket: descriptor, peer }.into_io(&server)?;
    io.permit = server.limits.admission.as_ref().map(ConnectionAdmission::admit);
    io.has_begun.set(has_begun);
    if let Some(announced) = announced {
        // It is set once, here.
        _ = io.announced.set(Box::new(announced));
    }
    server.counters.accepted.add();
    let is_of_many = server.trusts(&io.peer) && io.announced.get().is_none();
    if is_of_many || server.admit_address(&io).is_ok() {
        spawn(in_force, server, io);
    }
    Ok(())
}

async fn accept_connections<H: Handler>(
    listener: &Accepting,
    in_force: &InForce<H>,
    serve: &mut impl FnMut(Accepted),
) {
    let (mut full, mut exhausted) = (OccasionalWarning::default(), OccasionalWarning::default());
    loop {
        if let Some(server) = full_server(in_force) {
            server.counters.paused_connections.add();
            if full.is_due(&server) {
                tracing::warn!(address = %server.local, "accepting pauses: there are as many connections as `connections` allows");
            }
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        }
        match listener.accept().await {
            // A panic while one connection is admitted must not end the accepting of others.
            Ok(accepted) => _ = panics::catch(|| serve(accepted)),
            Err(error) if is_exhaustion(&error) => {
                let server = in_force.current();
                server.counters.paused_descriptors.add();
                if exhausted.is_due(&server) {
                    tracing::warn!(address = %server.local, %error, "accepting pauses; raise `ulimit -n` or lower the connection limit");
                }
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
            // The client has disconnected before it was accepted.
            Err(error) => tracing::debug!(address = %in_force.current().local, %error, "accept"),
        }
    }
}

/// Returns the settings if they allow no further connection now.
fn full_server<H>(in_force: &InForce<H>) -> Option<Rc<Server<H>>> {
    let server = in_force.current();
    let is_full = server.limits.admission.as_ref().is_some_and(|admission| !admission.has_room());
    is_full.then_some(server)
}

/// Limits a warning to one in ten seconds.
#[derive(Default)]
pub(crate) struct OccasionalWarning {
    last: u64,
}

impl OccasionalWarning {
    pub(crate) fn is_due<H>(&mut self, server: &Server<H>) -> bool {
        let now = server.clock().now();
        let due = now >= self.last + 10;
        if due {
            self.last = now;
        }
        due
    }
}

/// Returns whether the error stays until some descriptor or memory is freed (accept(2)).
fn is_exhaustion(error: &io::Error) -> bool {
    let exhausted = [
        rustix::io::Errno::MFILE,
        rustix::io::Errno::NFILE,
        rustix::io::Errno::NOBUFS,
        rustix::io::Errno::NOMEM,
    ];
    exhausted.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

/// Ends connections that are overdue or hold too much, and writes the gathered log lines, once a
/// second, until the future is dropped.
pub async fn maintain_connections<H>(in_force: Rc<InForce<H>>) {
    let mut second = tokio::time::interval(Duration::from_secs(1));
    second.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        second.tick().await;
        let _ = panics::catch(|| {
            let server = in_force.current();
            server.state.open.end_overdue(server.clock().now(), &server.counters.timed_out);
            server.state.open.count_phases(&server.counters.open);
            server.state.open.check_watched();
            end_heaviest(&server);
            server.observers.logs.flush();
        });
    }
}

/// Ends the busy connections of the address for which most bytes are held, if little room is left
/// for other clients.
fn end_heaviest<H>(server: &Server<H>) {
    let Some(client_bytes) = &server.limits.client_bytes else { return };
    let Some(address) = client_bytes.heaviest_address() else { return };
    let connections = server.state.open.end_busy_of(address);
    if connections > 0 {
        client_bytes.count_cut(connections as u64);
        server.counters.cut_heaviest.add_many(connections as u64);
        tracing::warn!(
            listener = %server.local,
            connections,
            "connections are cut: most of limits.client_memory or limits.client_disk is held for their address"
        );
    }
}

/// Ends all connections: an idle one after [`LAST_REQUEST_TIME`], a busy one after its response or
/// after `limit`. Call it when accepting has ended.
///
/// A request may be on its way over a connection that is idle here, most likely over a new one. Its
/// response tells the client that it is the last (RFC 9112 section 9.6). So a client that sends its
/// request soon never sees a connection end without a response.
///
/// With a `successor`, idle connections without TLS go there instead, at once or after their
/// response.
pub async fn drain<H>(
    in_force: Rc<InForce<H>>,
    limit: Duration,
    successor: Option<mpsc::Sender<IdleConnection>>,
) {
    let server = in_force.current();
    let ListenerState { open, .. } = &*server.state;
    server.state.has_successor.set(successor.is_some());
    server.state.successor.replace(successor.clone());
    server.state.stopping.set(true);
    server.state.stop.notify_waiters();
    let until = Instant::now() + limit;
    let first_pause = LAST_REQUEST_TIME.min(limit);
    let ends_idle = Instant::now() + first_pause;
    let mut pause = if successor.is_some() { Duration::ZERO } else { first_pause };
    while tokio::time::timeout(pause, open.empty()).await.is_err() {
        if Instant::now() >= until {
            let left = server.connections();
            if !limit.is_zero() {
                tracing::warn!(address = %server.local, left, "connections are cut: their responses took too long");
            }
            open.end_all();
            break;
        }
        if let Some(successor) = &successor {
            // A process that hangs does not keep this one.
            let left = until.saturating_duration_since(Instant::now());
            _ = tokio::time::timeout(left, hand_over_idle(&server, successor)).await;
        }
        if Instant::now() >= ends_idle {
            open.end_idle(successor.is_some());
        }
        pause = IDLE_CHECK_INTERVAL.min(until.saturating_duration_since(Instant::now()));
    }
    // Whoever receives the connections waits for the end of them.
    server.state.successor.take();
    in_force.current().observers.logs.flush();
}

/// Gives the connections that are idle now to a successor, one after the other: each takes a
/// descriptor more on its way.
async fn hand_over_idle<H>(server: &Server<H>, successor: &mpsc::Sender<IdleConnection>) {
    let mut cursor = 0;
    while let Some(idle) = server.state.open.take_idle(&mut cursor, server.proxy_protocol) {
        if successor.send(idle).await.is_err() {
            return;
        }
    }
}
