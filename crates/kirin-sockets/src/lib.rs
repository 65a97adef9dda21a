#![deny(unsafe_code)]
//! Sockets that a process inherits from the one that started it, the socket of the service manager,
//! system calls on connected sockets ([`PlainSocket`]), and which descriptors a started process
//! inherits ([`ProcessStart`]).
//!
//! Three starters hand sockets over, each with variables of its own (`variables.rs`):
//! `start_server` of Server::Starter, systemd, and a Kirin that upgrades itself. The program calls
//! [`Inherited::take`] once, before anything else. It removes the variables, so that no child
//! process reads them, and makes the descriptors close-on-exec.
//!
//! The crate `listenfd` does the same for systemd alone. It cannot take other descriptors than
//! those from 3 on.

mod claim;
pub mod deferred_accept;
pub mod descriptor_passing;
pub mod keepalive;
mod notify;
pub mod plain_socket;
pub mod process_start;
pub mod silent_clients;
mod variables;

pub use notify::NotifySocket;
pub use plain_socket::PlainSocket;
pub use process_start::ProcessStart;
pub use variables::{DATAGRAMS_VARIABLE, LISTENERS_VARIABLE, PREDECESSOR_VARIABLE, Starter};

use std::os::fd::{OwnedFd, RawFd};
use std::os::unix::net::UnixStream;

use claim::Kind;
use variables::{Given, Variables};

/// The descriptors that were handed over.
#[derive(Debug, Default)]
pub struct Inherited {
    /// The starter that handed sockets over, if there are any.
    pub starter: Option<Starter>,
    /// The listening sockets.
    pub sockets: Vec<StarterSocket>,
    /// The sockets of the predecessor of this Kirin in an upgrade.
    pub predecessor: Option<PredecessorSockets>,
    /// The UDP sockets of that Kirin, by their addresses.
    pub datagrams: Vec<DatagramSockets>,
    /// The socket of systemd.
    pub notify: Option<NotifySocket>,
}

/// The sockets by which a Kirin talks to the one that it replaces.
#[derive(Debug)]
pub struct PredecessorSockets {
    /// The channel of messages.
    pub channel: UnixStream,
    /// The contents of the store.
    pub store: UnixStream,
    /// Connections of clients.
    pub connections: UnixStream,
}

/// The UDP sockets of one address, which a Kirin hands over in an upgrade.
#[derive(Debug)]
pub struct DatagramSockets {
    /// A unix socket that keeps messages apart (SOCK_SEQPACKET), to the Kirin that has had them.
    pub link: OwnedFd,
    /// The sockets.
    pub sockets: Vec<OwnedFd>,
}

/// An inherited listening stream socket.
#[derive(Debug)]
pub struct StarterSocket {
    /// The name that the starter gave: an address, or one of LISTEN_FDNAMES.
    pub name: String,
    /// The socket. It is closed on exec(2) and does not block.
    pub socket: OwnedFd,
}

/// An error in what a starter handed over.
#[derive(Debug, thiserror::Error)]
pub enum InheritError {
    /// A variable cannot be parsed.
    #[error("{name}=`{value}` is not understood: {expected}")]
    Variable {
        /// The name of the variable.
        name: &'static str,
        /// The value of the variable.
        value: String,
        /// The form that the value should have.
        expected: &'static str,
    },
    /// A descriptor is not a socket of the expected kind.
    #[error("descriptor {number}, which {variable} names, {what}")]
    Descriptor {
        /// The number of the descriptor.
        number: RawFd,
        /// The variable that names it.
        variable: &'static str,
        /// What is wrong with it.
        what: String,
    },
    /// The process has several threads, or has taken its descriptors already.
    #[error("descriptors can be taken over only once, before the first thread is started")]
    TooLate,
}

impl Inherited {
    /// Takes over the descriptors that the environment names, and removes the variables. Call this
    /// once, at the start of the program.
    pub fn take() -> Result<Self, InheritError> {
        let claims = claim::Claims::begin()?;
        let variables = Variables::read(|name| std::env::var_os(name), std::process::id());
        for name in variables::ALL {
            claims.forget_variable(name);
        }
        let Variables { given, predecessor, datagrams, notify } = variables?;
        let predecessor = match predecessor {
            None => None,
            Some([channel, store, connections]) => {
                let claim = |number| {
                    let claimed = claims.claim(number, Kind::Stream).map(UnixStream::from);
                    claimed.map_err(|what| descriptor_error(number, PREDECESSOR_VARIABLE, &what))
                };
                Some(PredecessorSockets {
                    channel: claim(channel)?,
                    store: claim(store)?,
                    connections: claim(connections)?,
                })
            }
        };
        let claim = |number, kind| {
            let claimed = claims.claim(number, kind);
            claimed.map_err(|what| descriptor_error(number, DATAGRAMS_VARIABLE, &what))
        };
        let of_address = |(link, sockets): (RawFd, Vec<RawFd>)| {
            let sockets = sockets.into_iter().map(|number| claim(number, Kind::Datagrams));
            Ok(DatagramSockets {
                link: claim(link, Kind::Messages)?,
                sockets: sockets.collect::<Result<_, InheritError>>()?,
            })
        };
        let datagrams = datagrams.into_iter().map(of_address).collect::<Result<_, InheritError>>();
        let mut inherited =
            Self { starter: None, sockets: Vec::new(), predecessor, datagrams: datagrams?, notify };
        if let Some(Given { starter, descriptors }) = given {
            for (number, name) in descriptors {
                let socket = claims.claim(number, Kind::Listener);
                let socket =
                    socket.map_err(|what| descriptor_error(number, starter.variable(), &what))?;
                inherited.sockets.push(StarterSocket { name, socket });
            }
            inherited.starter = Some(starter);
        }
        Ok(inherited)
    }
}

fn descriptor_error(number: RawFd, variable: &'static str, what: &dyn ToString) -> InheritError {
    InheritError::Descriptor { number, variable, what: what.to_string() }
}
