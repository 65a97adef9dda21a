#![deny(unsafe_code)]
//! What a process gets from the one that starts it: listening sockets, and where to say that it is
//! ready.
//!
//! Three starters hand sockets over, each with variables of its own (`variables.rs`):
//! `start_server` of Server::Starter, systemd, and a Kirin that upgrades itself. The program calls
//! [`Inherited::take`] once, before anything else; afterwards the variables are gone, so that no
//! child takes them for its own, and the descriptors are closed on exec(2).
//!
//! The crate `listenfd` does the same for systemd alone: it cannot be told other descriptors than 3
//! and those that follow.

mod claim;
pub mod keepalive;
mod notify;
mod variables;

pub use notify::NotifySocket;
pub use variables::{LISTENERS_VARIABLE, PREDECESSOR_VARIABLE, Source};

use std::os::fd::{OwnedFd, RawFd};
use std::os::unix::net::UnixStream;

use rustix::net::{AddressFamily, SocketType};

use variables::{Given, Variables};

/// What was handed over.
#[derive(Debug, Default)]
pub struct Inherited {
    /// By whom, if there are sockets.
    pub source: Option<Source>,
    /// Listening sockets.
    pub sockets: Vec<InheritedSocket>,
    /// The channel to the Kirin that this one is to take the place of.
    pub predecessor: Option<UnixStream>,
    /// Where systemd wants to hear of what the program does.
    pub notify: Option<NotifySocket>,
}

/// A listening stream socket.
#[derive(Debug)]
pub struct InheritedSocket {
    /// What the starter calls it: an address, or one of LISTEN_FDNAMES.
    pub name: String,
    /// The socket. It is closed on exec(2) and does not block.
    pub socket: OwnedFd,
}

/// What a starter says that cannot be.
#[derive(Debug, thiserror::Error)]
pub enum InheritError {
    /// A variable that cannot be read.
    #[error("{name}=`{value}` is not understood: {expected}")]
    Variable {
        /// Its name.
        name: &'static str,
        /// Its value.
        value: String,
        /// What it should look like.
        expected: &'static str,
    },
    /// A descriptor that is not what it should be.
    #[error("descriptor {number}, which {variable} names, {what}")]
    Descriptor {
        /// Its number.
        number: RawFd,
        /// Where it is named.
        variable: &'static str,
        /// What is wrong with it.
        what: String,
    },
    /// There are threads, or it has been called before.
    #[error("descriptors can be taken over only once, before the first thread is started")]
    TooLate,
}

impl Inherited {
    /// Takes over what the environment names, and removes the names from it. To be called once, at
    /// the program's begin.
    pub fn take() -> Result<Self, InheritError> {
        let claims = claim::Claims::begin()?;
        let variables = Variables::read(|name| std::env::var_os(name), std::process::id());
        for name in variables::ALL {
            claims.forget_variable(name);
        }
        let Variables { given, predecessor, notify } = variables?;
        let predecessor = match predecessor {
            None => None,
            Some(number) => Some(
                claims
                    .claim(number, false)
                    .map(UnixStream::from)
                    .map_err(|what| descriptor_error(number, PREDECESSOR_VARIABLE, &what))?,
            ),
        };
        let mut inherited = Self { source: None, sockets: Vec::new(), predecessor, notify };
        if let Some(Given { source, descriptors }) = given {
            for (number, name) in descriptors {
                let socket = claims.claim(number, true);
                let socket =
                    socket.map_err(|what| descriptor_error(number, source.variable(), &what))?;
                inherited.sockets.push(InheritedSocket { name, socket });
            }
            inherited.source = Some(source);
        }
        Ok(inherited)
    }
}

fn descriptor_error(number: RawFd, variable: &'static str, what: &dyn ToString) -> InheritError {
    InheritError::Descriptor { number, variable, what: what.to_string() }
}

/// Says what is wrong with a descriptor that should be a stream socket which listens, or a unix one
/// which does not.
fn check(socket: impl std::os::fd::AsFd, listening: bool) -> Result<(), String> {
    let failed =
        |error: rustix::io::Errno| format!("is not a socket: {}", std::io::Error::from(error));
    if rustix::net::sockopt::socket_type(&socket).map_err(failed)? != SocketType::STREAM {
        return Err("is a socket that has no connections (UDP?): Kirin serves none".into());
    }
    let family = rustix::net::getsockname(&socket).map_err(failed)?.address_family();
    if listening != rustix::net::sockopt::socket_acceptconn(&socket).map_err(failed)? {
        let is = if listening { "does not listen" } else { "is a listening socket" };
        return Err(format!("{is} (listen(2))"));
    }
    let allowed: &[_] = match listening {
        true => &[AddressFamily::INET, AddressFamily::INET6, AddressFamily::UNIX],
        false => &[AddressFamily::UNIX],
    };
    if allowed.contains(&family) {
        Ok(())
    } else {
        Err(format!("is of another address family: {family:?}"))
    }
}
