//! The listening sockets of the program: those that it was started with (`kirin-inherited`), and those that it binds.
//!
//! A listener of the configuration gets the sockets that listen on its address. So the same configuration serves with and
//! without a starter.

use kirin_http::listener::ListenError;
use kirin_http::{InheritedSocket, ListenAddress, Listener};
use kirin_inherited::{Inherited, Source};
use std::io;
use std::os::fd::OwnedFd;

/// Sockets that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// An address cannot be listened on.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// An address that the starter of this program could have opened, and has not.
    #[error(
        "{0} is in use by another process, perhaps by the Kirin that this one is to follow: {1} has to open it too, and hand it over"
    )]
    NotInherited(ListenAddress, Source),
    /// A socket that makes no sense.
    #[error("the socket {0} that {1} has handed over cannot be used: {2}")]
    Inherited(String, Source, #[source] io::Error),
    /// Connections to a socket that nobody serves would hang.
    #[error(
        "{0} has handed over {1}, which no listener of the configuration wants; {2}, or have {0} hand over only what is served"
    )]
    Unwanted(Source, String, String),
}

/// Sockets that the program was started with and no listener has yet.
pub struct Sockets {
    source: Option<Source>,
    inherited: Vec<(String, InheritedSocket)>,
    /// Of each listener, for a Kirin that follows: its address in the configuration, and the socket.
    kept: Vec<(ListenAddress, OwnedFd)>,
}

/// The sockets of one listener.
pub struct Opened {
    /// By loop.
    pub by_loop: Vec<Vec<Listener>>,
    /// Whether they were there before this program.
    pub is_inherited: bool,
}

impl Sockets {
    /// Looks at what was inherited.
    pub fn new(inherited: &mut Inherited) -> Result<Self, SocketError> {
        let Some(source) = inherited.source else {
            return Ok(Self { source: None, inherited: Vec::new(), kept: Vec::new() });
        };
        let mut known = Vec::new();
        for given in inherited.sockets.drain(..) {
            match InheritedSocket::new(given.socket) {
                Ok(socket) => known.push((given.name, socket)),
                Err(error) => return Err(SocketError::Inherited(given.name, source, error)),
            }
        }
        Ok(Self { source: Some(source), inherited: known, kept: Vec::new() })
    }

    /// Who has handed them over.
    pub fn source(&self) -> Option<Source> {
        self.source
    }

    /// The addresses of what was inherited.
    pub fn inherited_addresses(&self) -> Vec<ListenAddress> {
        let mut addresses: Vec<ListenAddress> = Vec::new();
        for (_, socket) in &self.inherited {
            if !addresses.contains(socket.address()) {
                addresses.push(socket.address().clone());
            }
        }
        addresses
    }

    /// Sockets that listen on `wanted`, for each of `loops` event loops.
    pub fn open(&mut self, wanted: &ListenAddress, loops: usize) -> Result<Opened, SocketError> {
        let sockets = self.take(wanted);
        let is_inherited = !sockets.is_empty();
        let by_loop = if is_inherited {
            Listener::adopt(wanted, &sockets, loops)?
        } else {
            let bound = Listener::bind(wanted, loops).map_err(|error| match (error, self.source) {
                (ListenError::InUse(address), Some(source)) => SocketError::NotInherited(address, source),
                (error, _) => error.into(),
            })?;
            bound.into_iter().map(|listener| vec![listener]).collect()
        };
        if is_inherited {
            self.kept.extend(sockets.into_iter().map(|socket| (wanted.clone(), socket)));
        } else {
            for listener in by_loop.iter().flatten() {
                let copy = listener.try_clone().map_err(|error| ListenError::Io(wanted.clone(), error))?;
                self.kept.push((wanted.clone(), copy));
                // Loops share a unix socket.
                if matches!(wanted, ListenAddress::Unix(_)) {
                    break;
                }
            }
        }
        Ok(Opened { by_loop, is_inherited })
    }

    /// Takes the sockets of one address out. One that is written just so goes before one that means the same; a Kirin that this
    /// one follows has named them as its configuration does, which may say "any free port".
    fn take(&mut self, wanted: &ListenAddress) -> Vec<OwnedFd> {
        let named = wanted.to_string();
        let by_name = self.source == Some(Source::Kirin);
        let is_named = |name: &str| by_name && name == named;
        let exact = |(name, socket): &(String, InheritedSocket)| is_named(name) || socket.address() == wanted;
        let mut taken: Vec<_> = self.inherited.extract_if(.., |given| exact(given)).collect();
        if taken.is_empty() {
            taken = self.inherited.extract_if(.., |(_, socket)| socket.serves(wanted)).collect();
        }
        taken.into_iter().map(|(_, socket)| socket.into_socket()).collect()
    }

    /// Sockets that no listener wants are closed if they come from a Kirin, whose configuration may have been another. Otherwise
    /// somebody has asked for something that does not happen.
    pub fn refuse_unwanted(&mut self) -> Result<(), SocketError> {
        let Some(source) = self.source else { return Ok(()) };
        let unwanted: Vec<String> = self
            .inherited
            .drain(..)
            .map(|(name, socket)| match socket.address().to_string() {
                address if source == Source::Systemd => format!("{address} ({name})"),
                address => address,
            })
            .collect();
        let Some(first) = unwanted.first() else { return Ok(()) };
        if source == Source::Kirin {
            tracing::info!("no listener of the configuration wants {}: closed", unwanted.join(", "));
            return Ok(());
        }
        let address = first.split(' ').next().unwrap_or(first);
        let advice = format!("add a [[listener]] with address = \"{address}\"");
        Err(SocketError::Unwanted(source, unwanted.join(", "), advice))
    }

    /// What a Kirin that follows gets.
    pub fn into_kept(self) -> Vec<(ListenAddress, OwnedFd)> {
        self.kept
    }
}
