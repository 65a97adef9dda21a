//! Fills the server, and runs the event loop that keeps every connection busy until the time is
//! over.

use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use kirin_floor::address::Address;
use kirin_floor::latency::Latencies;
use kirin_floor::reply::next_element;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;

use crate::connection::{Connection, Progress};
use crate::workload::{Batches, Workload};

/// The numbers of a run.
#[derive(Default)]
pub struct Outcome {
    /// The length of the run.
    pub elapsed: Duration,
    /// The number of answered commands.
    pub commands: usize,
    /// The number of received values.
    pub values: usize,
    /// The number of requested values that were missing.
    pub misses: usize,
    /// The times from the write of a batch to its last reply.
    pub latencies: Latencies,
}

/// The time after which a silent server has failed.
const SILENCE_LIMIT: Duration = Duration::from_secs(5);

/// The number of sets in one write while the server is filled.
const FILL_CHUNK: usize = 50;

/// The seed of every run, so that all runs are alike. It may be any number but 0.
const SEED: u64 = 0x9E37_79B9_7F4A_7C15;

/// Stores every key once.
pub fn fill(address: &Address, workload: &Workload) -> io::Result<()> {
    let mut socket = address.connect()?;
    socket.set_read_timeout(Some(SILENCE_LIMIT))?;
    let batches = Batches::new(workload, SEED);
    let numbers: Vec<usize> = (0..workload.keys).collect();
    for chunk in numbers.chunks(FILL_CHUNK) {
        let mut request = Vec::new();
        chunk.iter().for_each(|&number| batches.append_set(number, &mut request));
        socket.write_all(&request)?;
        let mut received = Vec::new();
        let mut read = [0; 4096];
        for _ in chunk {
            let length = loop {
                if let Some((_, length)) = next_element(&received).map_err(io::Error::other)? {
                    break length;
                }
                match socket.read(&mut read)? {
                    0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                    count => received.extend_from_slice(&read[..count]),
                }
            };
            received.drain(..length);
        }
    }
    Ok(())
}

/// Keeps `connections` connections busy for `duration`. The first refusal or lost connection ends
/// the run with an error, because numbers of runs with failures cannot be compared.
pub fn load(
    address: &Address,
    workload: &Workload,
    connections: usize,
    duration: Duration,
) -> io::Result<Outcome> {
    let mut connections = (0..connections)
        .map(|_| Connection::new(address.connect()?))
        .collect::<io::Result<Vec<Connection>>>()?;
    let mut batches = Batches::new(workload, SEED);
    let epoll = epoll::create(CreateFlags::CLOEXEC)?;
    let begin = Instant::now();
    for (index, connection) in connections.iter_mut().enumerate() {
        epoll::add(&epoll, &connection.socket, key_of(index), EventFlags::empty())?;
        let progress = connection.begin(begin, |request| batches.next(request))?;
        wait_for(&epoll, index, connection, &progress)?;
    }

    let mut outcome = Outcome::default();
    let mut events = [Event { flags: EventFlags::empty(), data: EventData::new_u64(0) }; 256];
    let silence_limit = SILENCE_LIMIT.try_into().map_err(io::Error::other)?;
    let mut now = begin;
    while now.duration_since(begin) < duration {
        let ready = match epoll::wait(&epoll, &mut events, Some(&silence_limit)) {
            Err(Errno::INTR) => continue,
            ready => ready?,
        };
        if ready == 0 {
            return Err(io::ErrorKind::TimedOut.into());
        }
        for event in &events[..ready] {
            let index = event.data.u64() as usize;
            let connection = &mut connections[index];
            let was_sending = connection.is_sending();
            let mut progress = connection.proceed(workload.value_bytes)?;
            if let Progress::Answered(answered) = progress {
                now = Instant::now();
                outcome.commands += answered.commands;
                outcome.values += answered.values;
                outcome.misses += connection.expected_values().saturating_sub(answered.values);
                outcome.latencies.record(now.duration_since(connection.since()));
                progress = connection.begin(now, |request| batches.next(request))?;
            }
            if was_sending != (progress == Progress::Sending) {
                wait_for(&epoll, index, connection, &progress)?;
            }
        }
    }
    outcome.elapsed = now.duration_since(begin);
    Ok(outcome)
}

/// Registers for the readiness that the connection needs next.
fn wait_for(
    epoll: &OwnedFd,
    index: usize,
    connection: &Connection,
    progress: &Progress,
) -> io::Result<()> {
    let interest = match progress {
        Progress::Sending => EventFlags::IN | EventFlags::OUT,
        Progress::Waiting | Progress::Answered(_) => EventFlags::IN,
    };
    Ok(epoll::modify(epoll, &connection.socket, key_of(index), interest)?)
}

fn key_of(index: usize) -> EventData {
    EventData::new_u64(index as u64)
}
