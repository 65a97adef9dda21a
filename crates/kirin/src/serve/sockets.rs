//! The listening sockets of the program: inherited ones (`kirin-sockets`), and those that it binds.
//!
//! A listener of the configuration gets the inherited sockets that listen on its address. So the
//! same configuration works with and without a starter.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use kirin_http::ListenAddress;
use kirin_server::listener::ListenError;
use kirin_server::{BindOptions, InheritedSocket, Listener};
use kirin_sockets::{DatagramSockets, Inherited, Starter};
use kirin_user::{ParentDirectory, User, UserError};

use crate::serve::datagram_sockets::ProgramDatagrams;

/// A socket that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// An address cannot be listened on.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// An address is in use, and the starter of this program did not hand its socket over.
    #[error(
        "{0} is in use by another process, perhaps by the Kirin that this one is to follow: {1} has to open it too, and hand it over"
    )]
    NotInherited(ListenAddress, Starter),
    /// An inherited socket is of a kind that Kirin cannot serve.
    #[error("the socket {0} that {1} has handed over cannot be used: {2}")]
    Inherited(String, Starter, #[source] io::Error),
    /// An inherited socket has no listener. Its clients would wait for ever.
    #[error(
        "{0} has handed over {1}, which no listener of the configuration wants; {2}, or have {0} hand over only what is served"
    )]
    Unwanted(Starter, String, String),
    /// A unix socket cannot be given to the user that serves.
    #[error(transparent)]
    Owner(#[from] UserError),
}

/// The sockets of the program, inherited or bound.
pub struct Sockets {
    starter: Option<Starter>,
    /// The user that will serve, if the program is to become one.
    user: Option<User>,
    inherited: Vec<(String, InheritedSocket)>,
    /// The sockets for a successor.
    for_successor: Vec<HeldSocket>,
    /// The number of the next listener that is opened.
    next: u64,
    /// Whether the program has all sockets of its start.
    is_settled: bool,
    files: SocketFiles,
    datagrams: ProgramDatagrams,
}

/// A socket that a successor gets.
struct HeldSocket {
    /// The number of its listener.
    listener: SocketNumber,
    /// Its address in the configuration.
    address: ListenAddress,
    socket: OwnedFd,
}

/// The number of a listener, for [`Sockets::close`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketNumber(u64);

/// The files of unix sockets. They are removed when this is dropped.
#[derive(Default)]
pub struct SocketFiles {
    files: Vec<SocketFile>,
    /// Whether another Kirin serves on them, and will remove them.
    are_others: bool,
}

struct SocketFile {
    path: PathBuf,
    /// Device, inode and time of the file. Another process may have put its own socket at the path.
    identity: (u64, u64, i64, i64),
}

impl SocketFiles {
    /// Adds the file at `path`, if there is one.
    pub fn add(&mut self, path: &Path) {
        let absolute = std::path::absolute(path);
        if let (Ok(path), Some(identity)) = (absolute, identity(path)) {
            self.files.push(SocketFile { path, identity });
        }
    }

    /// Removes one of the files now, so that another program can have the path.
    pub fn remove(&mut self, path: &Path) {
        let removed = self.files.extract_if(.., |file| file.path == path).collect();
        drop(Self { files: removed, are_others: self.are_others });
    }

    /// Leaves the files to a successor, which removes them.
    pub fn disown(&mut self) {
        self.are_others = true;
    }

    /// Takes the files over from a predecessor.
    pub fn own(&mut self) {
        self.are_others = false;
    }
}

impl Drop for SocketFiles {
    fn drop(&mut self) {
        if self.are_others {
            return;
        }
        for file in &self.files {
            if identity(&file.path) == Some(file.identity)
                && let Err(error) = fs::remove_file(&file.path)
            {
                // The user may not write the directory. The next start replaces the file.
                tracing::debug!(%error, "the socket {} stays", file.path.display());
            }
        }
    }
}

fn identity(path: &Path) -> Option<(u64, u64, i64, i64)> {
    let metadata = fs::symlink_metadata(path).ok()?;
    Some((metadata.dev(), metadata.ino(), metadata.mtime(), metadata.mtime_nsec()))
}

/// The sockets of one listener.
pub struct OpenedSockets {
    /// The sockets, by event loop.
    pub by_loop: Vec<Vec<Listener>>,
    /// Whether the sockets were inherited.
    pub is_inherited: bool,
    /// Their number.
    pub number: SocketNumber,
}

impl Sockets {
    /// Takes the inherited sockets over. New sockets will be bound for `user`.
    pub fn new(inherited: &mut Inherited, user: Option<&User>) -> Result<Self, SocketError> {
        let user = user.cloned();
        let datagrams = ProgramDatagrams::new(std::mem::take(&mut inherited.datagrams));
        let Some(starter) = inherited.starter else {
            return Ok(Self::with(None, user, Vec::new(), SocketFiles::default(), datagrams));
        };
        let mut known = Vec::new();
        for given in inherited.sockets.drain(..) {
            match InheritedSocket::new(given.socket) {
                Ok(socket) => known.push((given.name, socket)),
                Err(error) => return Err(SocketError::Inherited(given.name, starter, error)),
            }
        }
        // The files of a predecessor's sockets belong to it until this program serves.
        let files = SocketFiles { files: Vec::new(), are_others: starter == Starter::Kirin };
        Ok(Self::with(Some(starter), user, known, files, datagrams))
    }

    fn with(
        starter: Option<Starter>,
        user: Option<User>,
        inherited: Vec<(String, InheritedSocket)>,
        files: SocketFiles,
        datagrams: ProgramDatagrams,
    ) -> Self {
        Self {
            starter,
            user,
            inherited,
            for_successor: Vec::new(),
            next: 0,
            is_settled: false,
            files,
            datagrams,
        }
    }

    /// Returns the starter that handed sockets over.
    pub fn starter(&self) -> Option<Starter> {
        self.starter
    }

    /// Returns the addresses of the inherited sockets.
    pub fn inherited_addresses(&self) -> Vec<ListenAddress> {
        let mut addresses: Vec<ListenAddress> = Vec::new();
        for (_, socket) in &self.inherited {
            if !addresses.contains(socket.address()) {
                addresses.push(socket.address().clone());
            }
        }
        addresses
    }

    /// Opens sockets that listen on `wanted`, for each of `loops` event loops. A unix socket with
    /// an access mode of its own belongs to the user that serves.
    pub fn open(
        &mut self,
        wanted: &ListenAddress,
        loops: usize,
        options: &BindOptions,
    ) -> Result<OpenedSockets, SocketError> {
        let number = SocketNumber(self.next);
        self.next += 1;
        let sockets = self.take(wanted);
        let is_inherited = !sockets.is_empty();
        let by_loop = if is_inherited {
            Listener::adopt(wanted, &sockets, loops)?
        } else {
            if let ListenAddress::Unix(path) = wanted {
                ParentDirectory::check(path, self.user.as_ref())
                    .map_err(|error| ListenError::Io(wanted.clone(), error))?;
            }
            let bound = Listener::bind_with(wanted, loops, options).map_err(|error| {
                match (error, self.starter) {
                    (ListenError::InUse(address), Some(starter)) if !self.is_settled => {
                        SocketError::NotInherited(address, starter)
                    }
                    (error, _) => error.into(),
                }
            })?;
            bound.into_iter().map(|listener| vec![listener]).collect()
        };
        // Another starter removes the files that it has made.
        if let ListenAddress::Unix(path) = wanted
            && (!is_inherited || self.starter == Some(Starter::Kirin))
        {
            self.files.add(path);
            if let (Some(user), Some(_), false) = (&self.user, options.unix_mode, is_inherited) {
                user.give(path)?;
            }
        }
        if is_inherited {
            self.hold(number, wanted, sockets);
        } else {
            for listener in by_loop.iter().flatten() {
                let copy =
                    listener.try_clone().map_err(|error| ListenError::Io(wanted.clone(), error))?;
                self.hold(number, wanted, [copy]);
                // Loops share a unix socket.
                if matches!(wanted, ListenAddress::Unix(_)) {
                    break;
                }
            }
        }
        Ok(OpenedSockets { by_loop, is_inherited, number })
    }

    fn hold(
        &mut self,
        listener: SocketNumber,
        address: &ListenAddress,
        sockets: impl IntoIterator<Item = OwnedFd>,
    ) {
        let held = |socket| HeldSocket { listener, address: address.clone(), socket };
        self.for_successor.extend(sockets.into_iter().map(held));
    }

    /// Returns the UDP sockets.
    pub fn datagrams(&mut self) -> &mut ProgramDatagrams {
        &mut self.datagrams
    }

    /// Closes what this holds of a listener, and removes its file. The event loops close their own
    /// sockets.
    pub fn close(&mut self, listener: SocketNumber) {
        self.datagrams.close(listener);
        for held in self.for_successor.extract_if(.., |held| held.listener == listener) {
            if let ListenAddress::Unix(path) = &held.address
                && let Ok(path) = std::path::absolute(path)
            {
                self.files.remove(&path);
            }
        }
    }

    /// Takes the inherited sockets of one address. A socket with exactly this address goes before
    /// one with an equivalent address. A predecessor names its sockets as the configuration does,
    /// which may say "any free port".
    fn take(&mut self, wanted: &ListenAddress) -> Vec<OwnedFd> {
        let named = wanted.to_string();
        let by_name = self.starter == Some(Starter::Kirin);
        let is_named = |name: &str| by_name && name == named;
        let exact = |(name, socket): &(String, InheritedSocket)| {
            is_named(name) || socket.address() == wanted
        };
        let mut taken: Vec<_> = self.inherited.extract_if(.., |given| exact(given)).collect();
        if taken.is_empty() {
            taken = self.inherited.extract_if(.., |(_, socket)| socket.serves(wanted)).collect();
        }
        taken.into_iter().map(|(_, socket)| socket.into_socket()).collect()
    }

    /// Checks that every inherited socket has a listener. Those of a predecessor are closed,
    /// because its configuration may have been another. Those of another starter are an error,
    /// because their clients would get no answer.
    pub fn refuse_unwanted(&mut self) -> Result<(), SocketError> {
        self.is_settled = true;
        self.datagrams.close_unwanted();
        let Some(starter) = self.starter else { return Ok(()) };
        let unwanted: Vec<String> = self
            .inherited
            .drain(..)
            .map(|(name, socket)| match socket.address().to_string() {
                address if starter == Starter::Systemd => format!("{address} ({name})"),
                address => address,
            })
            .collect();
        let Some(first) = unwanted.first() else { return Ok(()) };
        if starter == Starter::Kirin {
            tracing::info!(
                "no listener of the configuration wants {}: closed",
                unwanted.join(", ")
            );
            return Ok(());
        }
        let address = first.split(' ').next().unwrap_or(first);
        let advice = format!("add a [[listener]] with address = \"{address}\"");
        Err(SocketError::Unwanted(starter, unwanted.join(", "), advice))
    }

    /// Returns the files of the unix sockets that have been opened.
    pub fn files(&mut self) -> &mut SocketFiles {
        &mut self.files
    }

    /// Closes what this holds for a successor: there will be none any more, and clients that find a
    /// socket open wait.
    pub fn drop_held(&mut self) {
        self.for_successor.clear();
        self.datagrams.drop_held();
    }

    /// Returns the sockets that a successor gets, under their names in the configuration.
    pub fn for_successor(&self) -> impl Iterator<Item = (&ListenAddress, &OwnedFd)> {
        self.for_successor.iter().map(|held| (&held.address, &held.socket))
    }

    /// Returns the UDP sockets that a successor gets.
    pub fn datagrams_for_successor(&self) -> impl Iterator<Item = &DatagramSockets> {
        self.datagrams.for_successor()
    }
}
