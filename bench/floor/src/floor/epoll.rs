//! One event loop that waits, reads, and writes the fixed response. A request costs two system
//! calls, and a part of a third that it shares with others.

use std::io;
use std::net::TcpListener;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{SendFlags, SocketFlags};

struct Connection {
    socket: OwnedFd,
    state: State,
}

enum State {
    Reading,
    /// The socket took only a part of a large response. The rest waits until the socket is
    /// writable.
    Writing {
        sent: usize,
    },
}

/// What happens to a connection after its turn.
enum Outcome {
    Keep,
    Close,
}

/// Serves until the listener fails.
pub fn serve(listener: &TcpListener, response: &[u8]) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let listener_key = key_of(listener);
    let epoll = epoll::create(CreateFlags::CLOEXEC)?;
    epoll::add(&epoll, listener, EventData::new_u64(listener_key), EventFlags::IN)?;

    let mut connections: Vec<Option<Connection>> = Vec::new(); // index: descriptor
    let mut events = [Event { flags: EventFlags::empty(), data: EventData::new_u64(0) }; 256];
    let mut request = [0_u8; 16 * 1024];
    loop {
        let ready = match epoll::wait(&epoll, &mut events, None) {
            Err(Errno::INTR) => continue,
            ready => ready?,
        };
        for event in &events[..ready] {
            let key = event.data.u64();
            if key == listener_key {
                accept(listener, &epoll, &mut connections)?;
                continue;
            }
            let Some(slot) = connections.get_mut(key as usize) else { continue };
            let Some(connection) = slot else { continue };
            match answer(connection, &epoll, &mut request, response) {
                Ok(Outcome::Keep) => {}
                // The kernel removes a closed descriptor from the epoll set.
                Ok(Outcome::Close) | Err(_) => *slot = None,
            }
        }
    }
}

/// Does all the work for one readiness: reads the bytes that are there and answers them once.
fn answer(
    connection: &mut Connection,
    epoll: &OwnedFd,
    request: &mut [u8],
    response: &[u8],
) -> Result<Outcome, Errno> {
    let already_sent = match connection.state {
        State::Reading if rustix::io::read(&connection.socket, request)? == 0 => {
            return Ok(Outcome::Close);
        }
        State::Reading => 0,
        State::Writing { sent } => sent,
    };
    let sent =
        match rustix::net::send(&connection.socket, &response[already_sent..], SendFlags::NOSIGNAL)
        {
            Err(Errno::AGAIN) => already_sent,
            sent => already_sent + sent?,
        };
    let (next, interest) = if sent == response.len() {
        (State::Reading, EventFlags::IN)
    } else {
        (State::Writing { sent }, EventFlags::OUT)
    };
    if std::mem::discriminant(&next) != std::mem::discriminant(&connection.state) {
        let key = EventData::new_u64(key_of(&connection.socket));
        epoll::modify(epoll, &connection.socket, key, interest)?;
    }
    connection.state = next;
    Ok(Outcome::Keep)
}

/// Accepts one connection. While more are waiting, the listener stays readable and the loop calls
/// this again.
fn accept(
    listener: &TcpListener,
    epoll: &OwnedFd,
    connections: &mut Vec<Option<Connection>>,
) -> io::Result<()> {
    let socket =
        match rustix::net::accept_with(listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
            Err(Errno::AGAIN | Errno::INTR | Errno::CONNABORTED) => return Ok(()),
            socket => socket?,
        };
    let key = key_of(&socket);
    epoll::add(epoll, &socket, EventData::new_u64(key), EventFlags::IN)?;
    let index = key as usize;
    if connections.len() <= index {
        connections.resize_with(index + 1, || None);
    }
    connections[index] = Some(Connection { socket, state: State::Reading });
    Ok(())
}

/// Returns the number of the descriptor. It is unique among the open ones and never negative.
fn key_of(socket: &impl AsRawFd) -> u64 {
    u64::from(socket.as_raw_fd().unsigned_abs())
}
