//! The two servers of the tests, and a client that sends bytes.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use kirin_memcache::{
    Executor, Flow, MemcachedServer, MemcachedSession, MemcachedSocket, OutputBuffer,
    ServerOptions, serve,
};
use kirin_origin::{OriginConfig, OriginState, StoreOrigin};
use kirin_store::{Now, Store, StoreConfig};
use kirin_tests::{LeasedPort, RedisServer, patient};
use tokio::sync::oneshot;
use tokio::task::LocalSet;

/// Returns enough time for any answer on a busy machine. Only a failing test waits so long.
pub fn answer_timeout() -> Duration {
    patient(Duration::from_secs(30))
}

/// Waits until `met` returns true.
pub fn wait_until(what: &str, mut met: impl FnMut() -> bool) {
    let started = Instant::now();
    while !met() {
        assert!(started.elapsed() < answer_timeout(), "gave up waiting: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Returns bytes as readable text.
pub fn show(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string()
}

/// A server of Kirin on event loops of its own, in this process.
pub struct Kirin {
    pub address: SocketAddr,
    pub server: Arc<MemcachedServer>,
    loops: Vec<(oneshot::Sender<()>, JoinHandle<()>)>,
    /// The thread that keeps the connection to the origin, if there is one.
    origin: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
}

impl Kirin {
    pub fn start() -> Kirin {
        Kirin::with(ServerOptions::default(), 1)
    }

    pub fn with(options: ServerOptions, loops: usize) -> Kirin {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        listener.set_nonblocking(true).expect("a non-blocking listener");
        let address = listener.local_addr().expect("its address");
        let clone = || {
            let listener = listener.try_clone().expect("the listener again");
            move || {
                let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
                MemcachedSocket::Tcp(listener)
            }
        };
        Kirin::on(address, (0..loops).map(|_| clone()).collect(), options)
    }

    /// Starts a server of a near cache, and waits until it has a connection to its origin.
    pub fn before(redis: &RedisServer, options: ServerOptions) -> Kirin {
        let address = format!("redis://{}", redis.address()).parse().expect("an address");
        let config = OriginConfig {
            timeout: patient(Duration::from_secs(5)),
            ..OriginConfig::new(address, None).expect("settings")
        };
        let item_limit_bytes = options.limits.item_size_bytes;
        let store =
            Arc::new(Store::new(StoreConfig { item_limit_bytes, ..StoreConfig::default() }));
        let origin = StoreOrigin::new(config, Arc::clone(&store));
        let (stop, stopped) = oneshot::channel::<()>();
        let kept = Arc::clone(&origin);
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(async {
                tokio::select! {
                    () = kept.run() => {}
                    _ = stopped => {}
                }
            });
        });
        wait_until("a connection to the origin", || {
            matches!(origin.state(), OriginState::Connected { .. })
        });
        let options = ServerOptions { origin: Some(origin), ..options };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        listener.set_nonblocking(true).expect("a non-blocking listener");
        let address = listener.local_addr().expect("its address");
        let listen = move || {
            let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
            MemcachedSocket::Tcp(listener)
        };
        let server = MemcachedServer::new(store, options);
        let mut kirin = Kirin::serving(address, vec![listen], server);
        kirin.origin = Some((stop, thread));
        kirin
    }

    /// Starts a server on a unix socket, with `loops` event loops.
    pub fn on_unix_socket(path: &Path, loops: usize) -> Kirin {
        let listener = UnixListener::bind(path).expect("a socket");
        listener.set_nonblocking(true).expect("a non-blocking listener");
        let clone = || {
            let listener = listener.try_clone().expect("the listener again");
            move || {
                let listener = tokio::net::UnixListener::from_std(listener).expect("a listener");
                MemcachedSocket::Unix(listener)
            }
        };
        let no_address = (Ipv4Addr::UNSPECIFIED, 0).into();
        Kirin::on(no_address, (0..loops).map(|_| clone()).collect(), ServerOptions::default())
    }

    /// Serves each of `listeners` on a loop of its own, where it is made.
    fn on<F>(address: SocketAddr, listeners: Vec<F>, options: ServerOptions) -> Kirin
    where
        F: FnOnce() -> MemcachedSocket + Send + 'static,
    {
        let item_limit_bytes = options.limits.item_size_bytes;
        let store =
            StoreConfig { memory_bytes: 256 << 20, item_limit_bytes, ..StoreConfig::default() };
        let server = MemcachedServer::new(Arc::new(Store::new(store)), options);
        Kirin::serving(address, listeners, server)
    }

    fn serving<F>(address: SocketAddr, listeners: Vec<F>, server: Arc<MemcachedServer>) -> Kirin
    where
        F: FnOnce() -> MemcachedSocket + Send + 'static,
    {
        let loops = listeners
            .into_iter()
            .map(|listener| {
                let (stop, stopped) = oneshot::channel();
                let server = Arc::clone(&server);
                let run = move || {
                    let runtime = tokio::runtime::Builder::new_current_thread()
                        .enable_all()
                        .build()
                        .expect("a runtime");
                    LocalSet::new().block_on(&runtime, async move {
                        let stopped = async { drop(stopped.await) };
                        serve(listener(), server, stopped).await;
                    });
                };
                (stop, std::thread::spawn(run))
            })
            .collect();
        Kirin { address, server, loops, origin: None }
    }

    pub fn connect(&self) -> Client {
        Client { is_near_cache: self.origin.is_some(), ..Client::connect(self.address) }
    }
}

impl Drop for Kirin {
    fn drop(&mut self) {
        for (stop, handle) in self.loops.drain(..).chain(self.origin.take()) {
            drop(stop);
            if handle.join().is_err() && !std::thread::panicking() {
                panic!("an event loop of the server panicked");
            }
        }
    }
}

/// The memcached of the distribution.
pub struct Memcached {
    pub address: SocketAddr,
    child: Child,
    _lease: LeasedPort,
}

impl Memcached {
    pub fn start() -> Memcached {
        Memcached::with(&[])
    }

    /// Starts a memcached with further options.
    pub fn with(options: &[&str]) -> Memcached {
        let lease = LeasedPort::lease();
        let address = lease.address();
        let child = Command::new("memcached")
            .args(["-l", "127.0.0.1", "-U", "0", "-u", "nobody", "-m", "256", "-t", "1"])
            .args(options)
            .args(["-p", &address.port().to_string()])
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| {
                panic!(
                    "memcached does not start ({error}); run tests/install_clients.sh of this crate"
                )
            });
        let mut memcached = Memcached { address, child, _lease: lease };
        wait_until("memcached listens", || {
            let ended = memcached.child.try_wait().expect("the state of memcached");
            assert!(ended.is_none(), "memcached has ended: {ended:?}");
            TcpStream::connect(address).is_ok()
        });
        memcached
    }

    pub fn connect(&self) -> Client {
        Client::connect(self.address)
    }
}

impl Drop for Memcached {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// A connection that sends bytes and collects answers.
pub struct Client {
    pub stream: TcpStream,
    /// Whether the server keeps copies of items that an origin has.
    pub is_near_cache: bool,
}

impl Client {
    pub fn connect(address: SocketAddr) -> Client {
        let stream = TcpStream::connect(address).expect("a connection");
        stream.set_read_timeout(Some(answer_timeout())).expect("a read timeout");
        stream.set_nodelay(true).expect("no delay");
        Client { stream, is_near_cache: false }
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("the server takes the command");
    }

    /// Sends `bytes` and returns the answer up to `end`, or up to the end of the connection.
    pub fn ask_until(&mut self, bytes: &[u8], end: &[u8]) -> Vec<u8> {
        // The server may have closed the connection already. Then the read tells so.
        let _ = self.stream.write_all(bytes);
        let mut answer = Vec::new();
        let mut part = vec![0; 64 << 10];
        while !answer.ends_with(end) {
            match self.stream.read(&mut part) {
                Ok(0) => break,
                Ok(count) => answer.extend_from_slice(&part[..count]),
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => break,
                Err(error) => panic!("after {}: {error}; got {}", show(bytes), show(&answer)),
            }
        }
        answer
    }

    /// Sends `bytes` and a no-op, and returns the answer to `bytes`.
    pub fn ask(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.ask_before(bytes, (b"mn\r\n", b"MN\r\n"))
    }

    /// Sends `bytes` and a no-op, and returns the answer up to that of the no-op.
    pub fn ask_before(&mut self, bytes: &[u8], (no_op, end): (&[u8], &[u8])) -> Vec<u8> {
        let mut answer = self.ask_until(&[bytes, no_op].concat(), end);
        if answer.ends_with(end) {
            answer.truncate(answer.len() - end.len());
        } else {
            answer.extend_from_slice(b"<closed>");
        }
        answer
    }

    /// Returns everything until the server closes the connection.
    pub fn read_to_end(&mut self) -> Vec<u8> {
        let mut answer = Vec::new();
        match self.stream.read_to_end(&mut answer) {
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => {}
            Err(error) => panic!("{error}; got {}", show(&answer)),
        }
        answer
    }
}

/// The time of tests that set the clock.
pub const NOON: Now = Now::from_unix_seconds(1_700_000_000);

/// A session on a store of its own, with a clock that stands still.
pub struct Conversation {
    pub executor: Executor,
    session: MemcachedSession,
    pub ended: bool,
}

impl Conversation {
    pub fn new() -> Conversation {
        Conversation::with(ServerOptions::default())
    }

    pub fn with(options: ServerOptions) -> Conversation {
        let item_limit_bytes = options.limits.item_size_bytes;
        let store = Store::new(StoreConfig { item_limit_bytes, ..StoreConfig::default() });
        Conversation::on(&MemcachedServer::new(Arc::new(store), options))
    }

    /// Starts a conversation with a server that may have others.
    pub fn on(server: &Arc<MemcachedServer>) -> Conversation {
        let executor = Executor::new(Arc::clone(server));
        executor.set_now(NOON);
        Conversation { executor, session: MemcachedSession::default(), ended: false }
    }

    /// Sends `bytes` in one piece and returns the answer.
    pub fn say(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut answer = Vec::new();
        let mut input = bytes;
        while !self.ended {
            let mut output = OutputBuffer::default();
            let flow = self.session.feed(input, &self.executor, &mut output);
            drain(&mut output, &mut answer);
            input = b"";
            match flow {
                Flow::Read => break,
                Flow::Drain => {}
                Flow::Wait => panic!("a conversation has no origin"),
                Flow::Watch => {
                    let mut cx = Context::from_waker(Waker::noop());
                    while let Some(watcher) = self.session.watcher()
                        && let Poll::Ready(lines) = watcher.poll_lines(&mut cx)
                    {
                        answer.extend_from_slice(lines.as_bytes());
                    }
                    break;
                }
                Flow::Close(_) => self.ended = true,
            }
        }
        answer
    }
}

/// Moves all of `output` to `answer`, in pieces as a socket might take them.
fn drain(output: &mut OutputBuffer, answer: &mut Vec<u8>) {
    let mut take = 1;
    while !output.is_empty() {
        let mut slices = [std::io::IoSlice::new(&[]); 4];
        let count = output.slices(&mut slices);
        let ready: Vec<u8> =
            slices[..count].iter().flat_map(|slice| slice.iter().copied()).collect();
        assert!(
            !ready.is_empty(),
            "an output with {} bytes has nothing to send",
            output.unsent_bytes()
        );
        let taken = take.min(ready.len());
        answer.extend_from_slice(&ready[..taken]);
        output.advance(taken);
        take = (take * 2 + 1).min(1 << 16);
    }
}
