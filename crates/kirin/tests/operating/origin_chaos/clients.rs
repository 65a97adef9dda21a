//! Clients that do all kinds of things at random, and write down what they were told.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kirin_tests::wait_limit;

use super::history::{How, Kind, Operation, Outcome};
use super::machines::{Machines, Place};

/// Keys that are never purged by a tag or a prefix.
const PLAIN: [&str; 6] = ["k0", "k1", "k2", "k3", "k4", "k5"];
/// Keys whose items have tags, or none.
const TAGGED: [&str; 6] = ["t0", "t1", "t2", "t3", "t4", "t5"];
/// Keys below the prefixes.
const BELOW: [&str; 6] = ["p:a0", "p:a1", "p:a2", "p:b0", "p:b1", "p:b2"];
/// Keys that are only counted.
pub const COUNTED: [&str; 2] = ["n0", "n1"];
const TAGS: [&str; 5] = ["v", "w", "x", "y", "z"];
const PREFIXES: [&str; 3] = ["p:", "p:a", "p:b"];

/// Returns all keys that clients write.
pub fn keys() -> impl Iterator<Item = &'static str> {
    PLAIN.into_iter().chain(TAGGED).chain(BELOW).chain(COUNTED)
}

/// A client of the machine in one place.
pub struct Client<'a> {
    machines: &'a Machines,
    place: &'a Place,
    /// The connection, and the number of the machine at its other end.
    connection: Option<(TcpStream, usize)>,
    random: Random,
    operations: Vec<Operation>,
}

impl Drop for Client<'_> {
    fn drop(&mut self) {
        self.machines.add(self.operations.drain(..));
    }
}

impl<'a> Client<'a> {
    pub fn new(machines: &'a Machines, place: &'a Place, seed: u64) -> Self {
        let (connection, operations) = (None, Vec::new());
        Self { machines, place, connection, random: Random(seed), operations }
    }

    /// Does things at random until the flag is set.
    pub fn act_until(&mut self, is_over: &AtomicBool, counts: bool) {
        while !is_over.load(Ordering::Relaxed) {
            match self.random.below(if counts { 10 } else { 9 }) {
                0..3 => self.act_on_plain(),
                3..6 => self.act_on_tagged(),
                6..9 => self.act_below_a_prefix(),
                _ => self.count(),
            }
            // The checker wants changes, not many reads of the same.
            std::thread::sleep(Duration::from_micros(self.random.below(4000)));
        }
    }

    fn act_on_plain(&mut self) {
        let key = self.random.of(&PLAIN);
        match self.random.below(20) {
            0..4 => _ = self.act(key, Kind::Get),
            4..8 => _ = self.act(key, Kind::Show),
            8..12 => _ = self.act(key, Kind::Set { tags: Vec::new() }),
            12..15 => self.compare_and_set(key),
            15..17 => _ = self.act(key, Kind::Append),
            17..19 => _ = self.act(key, Kind::Delete),
            _ => _ = self.act(key, Kind::Touch),
        }
    }

    fn act_on_tagged(&mut self) {
        let key = self.random.of(&TAGGED);
        match self.random.below(20) {
            0..4 => _ = self.act(key, Kind::Get),
            4..9 => _ = self.act(key, Kind::Show),
            9..14 => {
                let mut tags: Vec<_> =
                    (0..self.random.below(3)).map(|_| self.random.of(&TAGS)).collect();
                tags.dedup();
                _ = self.act(key, Kind::Set { tags });
            }
            14..16 => _ = self.act(key, Kind::Append),
            16 => self.compare_and_set(key),
            17 => _ = self.act(key, Kind::Touch),
            18 => _ = self.act(key, Kind::Delete),
            _ => {
                let (tag, how) = (self.random.of(&TAGS), self.random.how());
                _ = self.act(tag, Kind::PurgeTag(how));
            }
        }
    }

    fn act_below_a_prefix(&mut self) {
        let key = self.random.of(&BELOW);
        match self.random.below(20) {
            0..4 => _ = self.act(key, Kind::Get),
            4..9 => _ = self.act(key, Kind::Show),
            9..15 => _ = self.act(key, Kind::Set { tags: Vec::new() }),
            15..17 => _ = self.act(key, Kind::Append),
            17..19 => self.compare_and_set(key),
            _ => {
                let (prefix, how) = (self.random.of(&PREFIXES), self.random.how());
                _ = self.act(prefix, Kind::PurgePrefix(how));
            }
        }
    }

    fn count(&mut self) {
        let key = self.random.of(&COUNTED);
        match self.random.below(20) {
            0..10 => _ = self.act(key, Kind::Count),
            10..18 => _ = self.act(key, Kind::Get),
            _ => _ = self.act(key, Kind::Touch),
        }
    }

    fn compare_and_set(&mut self, key: &str) {
        if let Outcome::Value(expected, unique) = self.act(key, Kind::Get) {
            self.act(key, Kind::Cas { unique, expected });
        }
    }

    /// Does one thing, and writes it down.
    pub fn act(&mut self, key: &str, kind: Kind) -> Outcome {
        let page = (kind == Kind::Show).then(|| self.place.web_address());
        let machine = page.map_or_else(|| self.connect(), |(_, machine)| machine);
        let mut operation = Operation {
            id: self.machines.next_id(),
            machine,
            key: key.to_owned(),
            kind,
            start: self.machines.now(),
            end: Duration::ZERO,
            outcome: Outcome::Unknown,
        };
        operation.outcome = match page {
            Some((address, _)) => {
                let response = show(address, &operation.command());
                response.map_or(Outcome::Unknown, |response| Outcome::of_page(&response))
            }
            None => {
                let answer = self.ask(&operation.command()).ok();
                if answer.is_none() {
                    self.connection = None;
                }
                Outcome::of(answer.as_deref())
            }
        };
        operation.end = self.machines.now();
        let outcome = operation.outcome.clone();
        self.operations.push(operation);
        outcome
    }

    /// Connects unless there is a connection. Returns the number of the machine.
    fn connect(&mut self) -> usize {
        let place = self.place;
        let (_, machine) = self.connection.get_or_insert_with(|| {
            kirin_tests::wait_for("a connection", || {
                let (port, machine) = place.address();
                let stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
                stream.set_nodelay(true).ok()?;
                // A machine is stopped for shorter than that.
                stream.set_read_timeout(Some(wait_limit())).ok()?;
                Some((stream, machine))
            })
        });
        *machine
    }

    /// Returns the answer to a command, or an error if the connection ends before.
    fn ask(&mut self, command: &str) -> io::Result<String> {
        const END: &[u8] = b"MN\r\n";
        let (stream, _) = self.connection.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        stream.write_all(format!("{command}mn\r\n").as_bytes())?;
        let mut answer = Vec::new();
        let mut piece = [0; 4096];
        while !answer.ends_with(END) {
            match stream.read(&mut piece)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => answer.extend_from_slice(&piece[..count]),
            }
        }
        answer.truncate(answer.len() - END.len());
        Ok(String::from_utf8(answer).expect("text"))
    }
}

/// Returns the response to a request on a connection of its own.
fn show(address: SocketAddr, request: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(wait_limit()))?;
    stream.write_all(request.as_bytes())?;
    let mut response = String::new();
    stream.read_to_string(&mut response)?;
    Ok(response)
}

/// Random numbers (SplitMix64).
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }

    /// Returns a time from `least` to twice of it.
    pub fn time(&mut self, least: Duration) -> Duration {
        least + least.mul_f64(self.below(1000) as f64 / 1000.0)
    }

    fn of(&mut self, names: &[&'static str]) -> &'static str {
        names[self.below(names.len() as u64) as usize]
    }

    fn how(&mut self) -> How {
        if self.below(2) == 0 { How::Hard } else { How::Soft }
    }
}
