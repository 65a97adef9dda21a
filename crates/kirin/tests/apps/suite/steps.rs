//! Carries out the steps of a case.

use std::collections::BTreeMap;

use kirin_tests::{Kirin, Site, wait_for};
use rustix::process::{Pid, Signal, kill_process};

use super::adapters::Adapter;
use super::cases::{AtOnce, Closed, Request, Response, Step, WebSocket};
use super::connection::{Connection, Received};
use super::expected;
use super::texts::{Memory, shown};
use super::websocket;

/// A case while it runs.
pub struct Progress<'a> {
    adapter: Adapter,
    site: &'a Site,
    kirin: &'a mut Kirin,
    connections: BTreeMap<String, Connection>,
    /// The bytes of the log before the case.
    log_before: usize,
    pub memory: Memory,
    /// The requests that were sent.
    pub requests: u64,
    /// Whether Kirin has ended.
    pub has_ended: bool,
}

impl<'a> Progress<'a> {
    /// Begins a case. The log of the start belongs to the first case of a Kirin.
    pub fn new(adapter: Adapter, site: &'a Site, kirin: &'a mut Kirin, is_first: bool) -> Self {
        let log_before = if is_first { 0 } else { kirin.log().len() };
        let mut memory = Memory::default();
        memory.remember("directory", site.root().to_str().expect("UTF-8").to_owned());
        memory.remember("kirin", kirin.pid().to_string());
        memory.remember("port", kirin.address().port().to_string());
        let connections = BTreeMap::new();
        Self {
            adapter,
            site,
            kirin,
            connections,
            log_before,
            memory,
            requests: 0,
            has_ended: false,
        }
    }

    /// Returns the log since the case began.
    pub fn log(&self) -> String {
        // A character at the border may be incomplete yet.
        self.kirin.log().get(self.log_before..).unwrap_or_default().to_owned()
    }

    /// Returns the process id of the only worker, and how often its application has run. The
    /// request goes over `connection`, which may be one that the case has used.
    pub fn state(&self, connection: Option<Connection>) -> (String, u64) {
        let mut connection = connection.unwrap_or_else(|| self.connect());
        let request = "GET /state HTTP/1.1\r\nHost: test\r\n\r\n";
        "GET".clone_into(&mut connection.method);
        connection.send(request.as_bytes());
        let received = connection.read();
        let text = String::from_utf8_lossy(&received.body).into_owned();
        let parts = text.split_once(' ').and_then(|(pid, runs)| Some((pid, runs.parse().ok()?)));
        let (pid, runs) =
            parts.unwrap_or_else(|| panic!("/state: {} {text}", shown(&received.head)));
        (pid.to_owned(), runs)
    }

    /// Sends a request, reads its response and checks it. Returns the connection if it can have
    /// another request.
    pub fn exchange(&mut self, request: &Request, response: &Response) -> Option<Connection> {
        self.send(request);
        let received = self.read(response);
        let connection = self.connections.remove(&request.on);
        connection.filter(|_| received.is_persistent)
    }

    /// Carries out a step.
    ///
    /// # Panics
    /// Panics if what happens is not what must.
    pub fn step(&mut self, step: &Step) {
        match step {
            Step::Send(request) => self.send(request),
            Step::Read(response) => {
                self.read(response);
            }
            Step::Bytes(bytes) => self.read_bytes(&bytes.on, &self.memory.bytes(&bytes.bytes)),
            Step::Last(bytes) => self.read_last(&bytes.on, &self.memory.bytes(&bytes.bytes)),
            Step::Websocket(opened) => self.open_websocket(opened),
            Step::Say(message) => {
                let frame = websocket::masked_message(&self.memory.bytes(&message.text));
                self.connection(&message.on).send(&frame);
            }
            Step::Hear(message) => {
                let frame = websocket::message(&self.memory.bytes(&message.text));
                self.read_bytes(&message.on, &frame);
            }
            Step::Closed(closed) => self.read_close(closed),
            Step::Put(put) => {
                let bytes = self.memory.bytes(&put.bytes);
                self.connection(&put.on).send(&bytes);
            }
            Step::End(name) => self.connection(name).end(),
            Step::Reset(name) => self.connections.remove(name).expect("a connection").reset(),
            Step::AtOnce(crowd) => self.at_once(crowd),
            Step::Until(until) => {
                let (target, body) =
                    (self.memory.expand(&until.target), self.memory.bytes(&until.body));
                wait_for(&format!("{target} to answer {}", shown(&body)), || {
                    self.requests += 1;
                    (self.kirin.get(&target).body == body).then_some(())
                });
            }
            Step::Write(file) => {
                let text = self.memory.bytes(&file.text);
                std::fs::write(self.site.path(&file.file), text).expect("a file");
            }
            Step::WaitFor(file) => {
                let path = self.site.path(&file.file);
                let text = wait_for(&file.file, || std::fs::read_to_string(&path).ok());
                if let Some(name) = &file.remember {
                    self.memory.remember(name, text);
                }
            }
            Step::Application(text) => {
                let ours = self.adapter.application();
                let text = if text.is_empty() { &ours } else { text };
                std::fs::write(self.site.path(self.adapter.file()), text).expect("a file");
            }
            Step::Signal(name) => self.kirin.signal(signal(name)),
            Step::Kill(kill) => {
                let process = self.memory.expand(&kill.process).parse().ok();
                let process = process.and_then(Pid::from_raw).expect("a process id");
                kill_process(process, signal(&kill.signal)).expect("kill");
            }
            Step::Log(text) => {
                let text = self.memory.expand(text);
                self.wait_for_log(&text, |log| log.contains(&text));
            }
            Step::Workers(count) => wait_for(&format!("{count} idle workers"), || {
                // A process that has just been forked has no connection yet.
                let idle = &self.kirin.status()["apps"][0]["idle_workers"];
                (self.kirin.worker_pids().len() == *count && idle == count).then_some(())
            }),
            Step::Gone(process) => {
                let process = self.memory.expand(process);
                wait_for(&format!("the end of {process}"), || (!is_alive(&process)).then_some(()));
            }
            Step::Draining(is_draining) => {
                assert!(is_draining, "no step");
                self.kirin.wait_until_draining();
            }
            Step::Exit(status) => {
                assert_eq!(self.kirin.wait().code(), Some(*status), "the status of Kirin");
                self.has_ended = true;
            }
        }
    }

    /// Waits until the log of the case satisfies a condition.
    pub fn wait_for_log(&self, what: &str, condition: impl Fn(&str) -> bool) {
        wait_for(&format!("`{what}` in the log"), || condition(&self.log()).then_some(()));
    }

    fn send(&mut self, request: &Request) {
        let bytes = self.encode(request);
        let method = method(request).to_owned();
        let pieces = request.pieces.unwrap_or(1);
        for piece in bytes.chunks(bytes.len().div_ceil(pieces)) {
            let connection = self.connection(&request.on);
            method.clone_into(&mut connection.method);
            connection.send(piece);
            if pieces > 1 {
                // The only event loop has read the piece when it answers another client.
                for _ in 0..2 {
                    assert_eq!(self.kirin.get("/front/file.txt").text(), "front");
                }
            }
        }
        self.requests += 1;
    }

    fn at_once(&mut self, crowd: &AtOnce) {
        let bytes = self.encode(&crowd.request);
        let mut connections: Vec<Connection> = (0..crowd.count).map(|_| self.connect()).collect();
        for connection in &mut connections {
            method(&crowd.request).clone_into(&mut connection.method);
            connection.send(&bytes);
            self.requests += 1;
        }
        for connection in &mut connections {
            expected::check(&crowd.response, &connection.read(), &self.memory);
        }
    }

    /// Returns the bytes of a request.
    fn encode(&self, request: &Request) -> Vec<u8> {
        if let Some(raw) = &request.raw {
            return self.memory.bytes(raw);
        }
        let version = request.version.as_deref().unwrap_or("HTTP/1.1");
        let target = &request.target;
        let mut head = format!("{} {target} {version}\r\nHost: test\r\n", method(request));
        for field in &request.fields {
            head.push_str(&format!("{field}\r\n"));
        }
        let mut rest = Vec::new();
        if let Some(body) = &request.body {
            rest = self.memory.content(body);
            head.push_str(&format!("Content-Length: {}\r\n", rest.len()));
        } else if !request.chunks.is_empty() {
            head.push_str("Transfer-Encoding: chunked\r\n");
            for chunk in &request.chunks {
                let chunk = self.memory.content(chunk);
                rest.extend(format!("{:x}\r\n", chunk.len()).bytes());
                rest.extend(chunk);
                rest.extend(b"\r\n");
            }
            rest.extend(b"0\r\n\r\n");
        }
        [self.memory.bytes(&head), b"\r\n".to_vec(), rest].concat()
    }

    fn read(&mut self, response: &Response) -> Received {
        let connection = self.connection(&response.on);
        let received = if response.head_only { connection.read_head() } else { connection.read() };
        expected::check(response, &received, &self.memory);
        if let Some(name) = &response.remember {
            let text = String::from_utf8_lossy(&received.body).into_owned();
            self.memory.remember(name, text);
        }
        received
    }

    fn read_bytes(&mut self, on: &str, bytes: &[u8]) {
        let came = self.connection(on).read_bytes(bytes.len());
        assert!(came == bytes, "expected {}; came {}", shown(bytes), shown(&came));
    }

    fn read_last(&mut self, on: &str, bytes: &[u8]) {
        let came = self.connection(on).read_to_end();
        assert!(came == bytes, "expected {} and the end; came {}", shown(bytes), shown(&came));
    }

    fn open_websocket(&mut self, opened: &WebSocket) {
        let on = opened.on.clone();
        let fields = websocket::FIELDS.map(str::to_owned).to_vec();
        let target = opened.target.clone();
        self.send(&Request { on: on.clone(), target, fields, ..Request::default() });
        let fields = vec![websocket::ACCEPT.to_owned()];
        let status = Some(101);
        self.read(&Response { on, status, fields, head_only: true, ..Response::default() });
    }

    fn read_close(&mut self, closed: &Closed) {
        let connection = self.connection(&closed.on);
        let mut frame = connection.read_bytes(2);
        assert_eq!(frame.first(), Some(&websocket::CLOSE), "a close frame; came {}", shown(&frame));
        frame.extend(connection.read_bytes(frame[1].into()));
        let code = frame.get(2..4).expect("a code");
        assert_eq!(code, closed.code.to_be_bytes(), "the code; came {}", shown(&frame));
        connection.send(&websocket::masked_close(closed.code));
        self.read_last(&closed.on, b"");
    }

    /// Returns the connection of a name, which is opened when it is first used.
    fn connection(&mut self, name: &str) -> &mut Connection {
        let address = self.kirin.address();
        self.connections.entry(name.to_owned()).or_insert_with(|| Connection::open(address))
    }

    fn connect(&self) -> Connection {
        Connection::open(self.kirin.address())
    }
}

fn method(request: &Request) -> &str {
    let has_body = request.body.is_some() || !request.chunks.is_empty();
    request.method.as_deref().unwrap_or(if has_body { "POST" } else { "GET" })
}

/// Returns whether a process runs. One whose status nobody has asked for has ended.
fn is_alive(process: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

fn signal(name: &str) -> Signal {
    match name {
        "HUP" => Signal::HUP,
        "INT" => Signal::INT,
        "KILL" => Signal::KILL,
        "QUIT" => Signal::QUIT,
        "TERM" => Signal::TERM,
        "TTIN" => Signal::TTIN,
        "TTOU" => Signal::TTOU,
        "USR2" => Signal::USR2,
        _ => panic!("no signal of the table: {name}"),
    }
}
