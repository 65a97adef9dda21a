//! A whole site for tests: event loops with the HTTP engine, an application in Perl behind it, a
//! client that speaks raw HTTP.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use kirin_files::AppFiles;
use kirin_http::{Answer, Handler, ListenAddress, Origin, RequestHead};
use kirin_server::{InForce, Limits, Listener, Observers, Server, listener};
use kirin_workers::{App, AppCode, AppConfig, AppError};
use tokio::sync::oneshot;

/// Returns the time within which whatever a test waits for must come.
pub fn wait_limit() -> Duration {
    patient(Duration::from_secs(30))
}

/// Returns a limit of a wait, scaled by the number in `KIRIN_TEST_WAIT_FACTOR`.
pub fn patient(limit: Duration) -> Duration {
    let factor = std::env::var("KIRIN_TEST_WAIT_FACTOR").map_or(1.0, |text| text.parse().unwrap());
    limit.mul_f64(factor)
}

struct OneApp(Arc<App>, Rc<AppFiles>);

impl Handler for OneApp {
    fn answer(&self, request: &RequestHead<'_>, origin: Origin<'_>) -> Answer {
        let meta = kirin_workers::MetaVariables::default();
        self.0.answer(request, origin, &self.1, &meta, None)
    }
}

/// A running application and the way to it.
pub struct Site {
    pub app: Arc<App>,
    pub address: SocketAddr,
    pub directory: tempfile::TempDir,
    supervisor: tokio::runtime::Handle,
    _stop: Vec<oneshot::Sender<()>>,
}

impl Site {
    /// Runs `program` (the text of an app.psgi) with one worker and one loop.
    pub fn start(program: &str) -> Self {
        Self::start_with(program, |_| {}).unwrap()
    }

    /// Runs `program`; `configure` may change the configuration.
    pub fn start_with(
        program: &str,
        configure: impl FnOnce(&mut AppConfig),
    ) -> Result<Self, AppError> {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("app.psgi");
        std::fs::write(&file, program).unwrap();
        let mut config = AppConfig::new("test", AppCode::Psgi(file.clone()));
        config.directory = Some(directory.path().to_owned());
        config.adapter = Some(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../adapters/perl"));
        config.workers = 1;
        configure(&mut config);

        let listeners =
            Listener::bind(&ListenAddress::Tcp("127.0.0.1:0".parse().unwrap()), 2).unwrap();
        let local = listeners[0].address().unwrap();
        let ListenAddress::Tcp(address) = local.clone() else { unreachable!() };
        let (mut handles, mut apps, mut stops) = (Vec::new(), Vec::new(), Vec::new());
        for listener in listeners {
            let (handle_sender, handle) = mpsc::channel();
            let (app_sender, app) = oneshot::channel::<Arc<App>>();
            let (stop_sender, stop) = oneshot::channel::<()>();
            let local = local.clone();
            std::thread::spawn(move || {
                let runtime =
                    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                handle_sender.send(runtime.handle().clone()).unwrap();
                tokio::task::LocalSet::new().block_on(&runtime, async move {
                    let Ok(app) = app.await else { return };
                    let app = Rc::new(OneApp(app, Rc::default()));
                    let server = InForce::new(Server::new(
                        app,
                        local,
                        Limits::default(),
                        Observers::default(),
                    ));
                    tokio::task::spawn_local(listener::accept(listener, server));
                    // Ends when the site is dropped.
                    let _ = stop.await;
                });
            });
            handles.push(handle.recv().unwrap());
            apps.push(app_sender);
            stops.push(stop_sender);
        }

        let supervisor =
            tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (stop_sender, stop) = oneshot::channel::<()>();
        stops.push(stop_sender);
        let app = {
            let _entered = supervisor.enter();
            App::start(config, handles)?
        };
        supervisor.block_on(app.ready())?;
        let handle = supervisor.handle().clone();
        std::thread::spawn(move || supervisor.block_on(stop));
        for sender in apps {
            let _ = sender.send(Arc::clone(&app));
        }
        Ok(Self { app, address, directory, supervisor: handle, _stop: stops })
    }

    pub fn connect(&self) -> Client {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(wait_limit())).unwrap();
        stream.set_nodelay(true).unwrap();
        Client { stream, buffer: Vec::new() }
    }

    /// Sends a GET on a connection of its own.
    pub fn get(&self, path: &str) -> Reply {
        let mut client = self.connect();
        client.send(format!("GET {path} HTTP/1.1\r\nHost: test\r\n\r\n"));
        client.reply()
    }

    /// Returns the process id of the only worker.
    pub fn worker(&self) -> u32 {
        let pids = self.app.worker_pids();
        assert_eq!(pids.len(), 1, "{pids:?}");
        pids[0]
    }

    pub fn stop(&self, limit: Duration) {
        self.supervisor.block_on(self.app.stop(limit));
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.stop(patient(Duration::from_secs(5)));
    }
}

/// A client connection.
pub struct Client {
    pub stream: TcpStream,
    buffer: Vec<u8>,
}

/// A response as it came.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Reply {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn field(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(": ")?;
            key.eq_ignore_ascii_case(name).then_some(value)
        })
    }
}

impl Client {
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).unwrap();
    }

    /// Reads the next response whole.
    pub fn reply(&mut self) -> Reply {
        self.try_reply(false).expect("the response was cut")
    }

    pub fn reply_to_head(&mut self) -> Reply {
        self.try_reply(true).expect("the response was cut")
    }

    /// Reads the next response; an error if the connection ends inside it.
    pub fn try_reply(&mut self, to_head: bool) -> Result<Reply, String> {
        let head = self.head()?;
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect(&head);
        let mut reply = Reply { status, head, body: Vec::new() };
        if to_head || status == 204 || status == 304 {
            return Ok(reply);
        }
        if reply.field("Transfer-Encoding") == Some("chunked") {
            while let Some(chunk) = self.chunk()? {
                reply.body.extend_from_slice(&chunk);
            }
        } else {
            let length = reply.field("Content-Length").expect("a length").parse().unwrap();
            reply.body = self.take(length)?;
        }
        Ok(reply)
    }

    pub fn head(&mut self) -> Result<String, String> {
        loop {
            if let Some(end) = self.buffer.windows(4).position(|window| window == b"\r\n\r\n") {
                return self.take(end + 4).map(|head| String::from_utf8(head).unwrap());
            }
            self.fill()?;
        }
    }

    /// Reads the next chunk of a chunked body. Returns `None` at its end.
    pub fn chunk(&mut self) -> Result<Option<Vec<u8>>, String> {
        let line_end = loop {
            match self.buffer.windows(2).position(|window| window == b"\r\n") {
                Some(end) => break end,
                None => self.fill()?,
            }
        };
        let line = self.take(line_end + 2)?;
        let length = usize::from_str_radix(std::str::from_utf8(&line).unwrap().trim(), 16).unwrap();
        let data = self.take(length)?;
        assert_eq!(self.take(2)?, b"\r\n");
        Ok((length > 0).then_some(data))
    }

    /// Returns the number of bytes that were received and not taken.
    pub fn buffered(&self) -> usize {
        self.buffer.len()
    }

    fn take(&mut self, count: usize) -> Result<Vec<u8>, String> {
        while self.buffer.len() < count {
            self.fill()?;
        }
        Ok(self.buffer.drain(..count).collect())
    }

    fn fill(&mut self) -> Result<(), String> {
        let mut piece = [0; 65536];
        match self.stream.read(&mut piece) {
            Ok(0) => Err(format!("end after {:?}", String::from_utf8_lossy(&self.buffer))),
            Ok(count) => {
                self.buffer.extend_from_slice(&piece[..count]);
                Ok(())
            }
            // A child has ended meanwhile: with a time limit on the socket no read is taken up
            // again (signal(7)).
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// Waits until `condition` holds.
pub fn eventually(what: &str, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < wait_limit(), "never: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Returns whether a process exists and is no zombie.
pub fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

pub fn kill(pid: u32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}

/// Returns the parent of a process.
pub fn parent_of(pid: u32) -> u32 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit_once(") ").unwrap().1.split(' ').nth(1).unwrap().parse().unwrap()
}
