//! Several Kirins with one Redis server, each behind its own proxy, and what befalls them.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use kirin_tests::{Kirin, LeasedPort, MemcachedClient, RedisServer, Site, wait_for};
use parking_lot::Mutex;
use rustix::process::{Pid, Signal, kill_process};

use super::history::{Fault, History, Machine, Operation};
use super::proxy::Proxy;

/// A machine: its memcached port, and pages that include the items.
const CONFIG: &str = r#"
threads = 2
[[listener]]
address = "127.0.0.1:0"
[store]
memcached = ["MEMCACHED"]
origin = "ORIGIN"
[[route]]
path = "/"
try = ["store"]
"#;

/// A Redis server and the machines before it.
pub struct Machines {
    pub redis: Mutex<RedisServer>,
    pub places: Vec<Place>,
    /// The address of other servers, which the machines reach without their proxies.
    others: Option<String>,
    began: Instant,
    last_id: AtomicU64,
    history: Mutex<History>,
}

/// A place where a Kirin runs, behind its proxy.
pub struct Place {
    pub proxy: Proxy,
    running: Mutex<Running>,
}

struct Running {
    // Killed when another one takes its place.
    program: Kirin,
    _site: Site,
    memcached: LeasedPort,
    machine: usize,
}

impl Machines {
    /// Starts a server and `count` machines. All have reached the server when this returns.
    pub fn start(count: usize) -> Self {
        Self::start_at(None, count)
    }

    /// Starts machines whose origin has this address. Their proxies are not in between.
    pub fn of(address: String, count: usize) -> Self {
        Self::start_at(Some(address), count)
    }

    fn start_at(others: Option<String>, count: usize) -> Self {
        let mut machines = Self {
            redis: Mutex::new(RedisServer::start()),
            places: Vec::new(),
            others,
            began: Instant::now(),
            last_id: AtomicU64::default(),
            history: Mutex::default(),
        };
        machines.places = (0..count).map(|_| machines.place()).collect();
        machines
    }

    /// Starts one more machine, which has no copies yet.
    pub fn place(&self) -> Place {
        let proxy = Proxy::start(self.redis.lock().address());
        let running = Mutex::new(self.run(&proxy));
        let place = Place { proxy, running };
        place.wait_for_write();
        place
    }

    /// Returns the time since the history began.
    pub fn now(&self) -> Duration {
        self.began.elapsed()
    }

    /// Returns a number for an operation.
    pub fn next_id(&self) -> u64 {
        self.last_id.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Adds what a client has done.
    pub fn add(&self, operations: impl IntoIterator<Item = Operation>) {
        self.history.lock().operations.extend(operations);
    }

    /// Returns what has happened until now.
    pub fn history(&self) -> History {
        self.history.lock().clone()
    }

    /// Does something harmful to machines, and waits until all of them can write again. Until then
    /// they may be late.
    pub fn fault(&self, places: &[usize], harm: impl FnOnce()) {
        let machines: Vec<usize> =
            places.iter().map(|place| self.places[*place].machine()).collect();
        let from = self.now();
        harm();
        for (place, machine) in places.iter().zip(machines) {
            // What is written now went over a connection that has lost nothing.
            self.places[*place].wait_for_write();
            self.history.lock().faults.push(Fault { machine, from, until: self.now() });
        }
    }

    /// Kills a machine and starts another one in its place.
    pub fn restart(&self, place: usize) {
        let place = &self.places[place];
        let mut running = place.running.lock();
        running.signal(Signal::KILL);
        *running = self.run(&place.proxy);
    }

    fn run(&self, proxy: &Proxy) -> Running {
        let machine = {
            let machines = &mut self.history.lock().machines;
            machines.push(Machine { born: self.now() });
            machines.len() - 1
        };
        let (site, memcached) = (Site::new(), LeasedPort::lease());
        let proxied = || format!("redis://{}", proxy.address());
        let config = CONFIG
            .replace("MEMCACHED", &memcached.address().to_string())
            .replace("ORIGIN", &self.others.clone().unwrap_or_else(proxied));
        let program = Kirin::start(&site, &config);
        Running { program, _site: site, memcached, machine }
    }
}

impl Place {
    /// Returns the memcached port of the machine that runs here now, and its number.
    pub fn address(&self) -> (u16, usize) {
        let running = self.running.lock();
        (running.memcached.number(), running.machine)
    }

    /// Returns the address of its pages, and its number.
    pub fn web_address(&self) -> (SocketAddr, usize) {
        let running = self.running.lock();
        (running.program.address(), running.machine)
    }

    /// Stops the process for a while.
    pub fn stop_for(&self, time: Duration) {
        self.running.lock().signal(Signal::STOP);
        std::thread::sleep(time);
        self.running.lock().signal(Signal::CONT);
    }

    fn machine(&self) -> usize {
        self.running.lock().machine
    }

    fn wait_for_write(&self) {
        let (port, _) = self.address();
        wait_for("a write", || {
            let answer = MemcachedClient::connect(port).ask(b"set probe 0 0 1\r\n1\r\n");
            (answer == b"STORED\r\n").then_some(())
        });
    }
}

impl Running {
    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.program.pid()).ok().and_then(Pid::from_raw);
        kill_process(pid.expect("a process"), signal).expect("it is there");
    }
}
