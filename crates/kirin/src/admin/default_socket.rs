//! The admin socket that commands find by themselves. A Kirin with an address of `[admin]` has it,
//! too, because commands that are run elsewhere do not know that address.
//!
//! It is opened in two steps. The directory is made while the program may still be root
//! ([`DefaultSocket::prepare`]). The socket is bound when the program is the user that serves
//! ([`DefaultSocket::open`]), so that root touches no file that this user could have exchanged. No
//! failure keeps the program from serving: it logs a warning.
//!
//! Another Kirin may answer on the socket: it was started with the same configuration, or it is the
//! one that `start_server` is about to end. Then this program waits for the socket
//! ([`serve_when_free`]).

use std::fs::{self, File, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use kirin_config::Config;
use kirin_http::ListenAddress;
use kirin_observe::served::Served;
use kirin_observe::socket_directory::SocketDirectories;
use kirin_observe::stage::{Stage, drain_limit, wait_to_serve};
use kirin_server::{BindOptions, Listener};
use kirin_sockets::Starter;
use kirin_user::User;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use tokio::sync::watch;
use tokio::task::spawn_local;

use super::{Admin, UNIX_MODE};
use crate::serve::sockets::{SocketFiles, Sockets};

/// How often a program asks whether the socket of another one is free.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// How long a program waits at its start while another one binds a socket in the same directory.
const LOCK_LIMIT: Duration = Duration::from_secs(1);

/// The default socket before it is open.
pub struct DefaultSocket {
    path: PathBuf,
    /// Whether a predecessor has handed it over.
    is_inherited: bool,
    /// Whether commands can reach the program without it.
    has_another: bool,
}

/// The default socket once the program has tried to open it.
#[derive(Default)]
pub struct OpenedSocket {
    /// The socket.
    pub listener: Option<Listener>,
    /// The path of the socket, if this program has opened it.
    pub path: Option<PathBuf>,
    /// The path of the socket, if another program answers on it.
    pub taken: Option<PathBuf>,
}

impl DefaultSocket {
    /// Makes the directory of the socket for `served`. There is no socket if no directory can be
    /// had.
    pub fn prepare(config: &Config, served: Option<&Served>, sockets: &Sockets) -> Option<Self> {
        let name = served?.socket_name();
        let has_another = config.admin.is_some();
        if let Some(path) = inherited(sockets, &name) {
            return Some(Self { path, is_inherited: true, has_another });
        }
        let user: Option<&User> = config.user.as_ref();
        match SocketDirectories::of_user(user).make(user, name.len()) {
            Ok(directory) => {
                Some(Self { path: directory.join(name), is_inherited: false, has_another })
            }
            Err(error) if has_another => {
                tracing::debug!(%error, "no default admin socket");
                None
            }
            Err(error) => {
                tracing::warn!(
                    "`kirin status` cannot reach this program, because it has no directory for its socket: {error}; \
                     `address` of [admin] chooses another place"
                );
                None
            }
        }
    }

    /// Takes the socket over from a predecessor. Call this before other inherited sockets are
    /// refused.
    pub fn inherit(&self, sockets: &mut Sockets) -> Option<OpenedSocket> {
        if !self.is_inherited {
            return None;
        }
        let address = ListenAddress::Unix(self.path.clone());
        match sockets.open(&address, 1, &BindOptions::default()) {
            Ok(opened) => Some(self.opened(opened.by_loop.into_iter().flatten().next())),
            Err(error) => {
                self.warn(&error);
                None
            }
        }
    }

    /// Opens the socket. Call this while the process has one thread.
    pub fn open(&self, sockets: &mut Sockets) -> OpenedSocket {
        let bound = lock(&self.path).and_then(|lock| {
            let probed = probe(&self.path)?;
            if probed == Probed::Free {
                let options = BindOptions { unix_mode: Some(UNIX_MODE), ..BindOptions::default() };
                let address = ListenAddress::Unix(self.path.clone());
                let opened = sockets.open(&address, 1, &options).map_err(io::Error::other)?;
                drop(lock);
                return Ok(self.opened(opened.by_loop.into_iter().flatten().next()));
            }
            Ok(self.taken())
        });
        match bound {
            Ok(opened) if opened.taken.is_some() => {
                let path = self.path.display();
                match sockets.starter() {
                    // The other program ends when this one serves.
                    Some(Starter::ServerStarter | Starter::Kirin) => {
                        tracing::info!("admin: waiting for unix:{path}")
                    }
                    _ => tracing::warn!(
                        "`kirin status` reaches another Kirin, which was started with the same configuration and answers at \
                         unix:{path}; it reaches this one when the other has ended"
                    ),
                }
                opened
            }
            Ok(opened) => opened,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.taken(),
            Err(error) => {
                self.warn(&error);
                OpenedSocket::default()
            }
        }
    }

    fn opened(&self, listener: Option<Listener>) -> OpenedSocket {
        tracing::debug!("admin on unix:{}", self.path.display());
        OpenedSocket { listener, path: Some(self.path.clone()), taken: None }
    }

    fn taken(&self) -> OpenedSocket {
        OpenedSocket { taken: Some(self.path.clone()), ..OpenedSocket::default() }
    }

    fn warn(&self, error: &dyn std::error::Error) {
        let path = self.path.display();
        match self.has_another {
            true => tracing::debug!(%error, "no default admin socket unix:{path}"),
            false => {
                tracing::warn!("`kirin status` cannot reach this program: unix:{path}: {error}");
            }
        }
    }
}

/// Returns the path of the socket that a predecessor has handed over under `name`. It is in the
/// directory that the predecessor chose, perhaps as root.
fn inherited(sockets: &Sockets, name: &str) -> Option<PathBuf> {
    if sockets.starter() != Some(Starter::Kirin) {
        return None;
    }
    sockets.inherited_addresses().into_iter().find_map(|address| match address {
        ListenAddress::Unix(path) if path.file_name().is_some_and(|own| own == name) => Some(path),
        _ => None,
    })
}

/// Waits until no other program has the socket, and serves it until the program ends. Must run on
/// an event loop.
pub async fn serve_when_free(path: PathBuf, admin: Admin, mut stage: watch::Receiver<Stage>) {
    if !wait_to_serve(&mut stage).await {
        return;
    }
    let listener = tokio::select! {
        _ = drain_limit(stage.clone()) => return,
        listener = bind_when_free(&path) => listener,
    };
    let Some(listener) = listener else { return };
    tracing::info!("admin on unix:{}", path.display());
    let mut file = SocketFiles::default();
    file.add(&path);
    let ending = stage.clone();
    // The next program gets the path before the last response of this one is sent.
    spawn_local(async move {
        drain_limit(ending).await;
        drop(file);
    });
    super::serve(listener, admin, stage).await;
}

async fn bind_when_free(path: &Path) -> Option<Listener> {
    loop {
        tokio::time::sleep(RETRY_INTERVAL).await;
        match bind(path) {
            Ok(Some(listener)) => return Some(listener),
            Ok(None) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => {
                tracing::warn!("`kirin status` cannot reach this program: {error}");
                return None;
            }
        }
    }
}

/// Binds the socket if no program has it. The directory of the socket keeps others out until the
/// mode is set: the umask belongs to all threads, so it is not changed here.
fn bind(path: &Path) -> io::Result<Option<Listener>> {
    let _lock = try_lock(path)?;
    if probe(path)? != Probed::Free {
        return Ok(None);
    }
    let address = ListenAddress::Unix(path.to_owned());
    let bound = Listener::bind(&address, 1).map_err(io::Error::other)?;
    fs::set_permissions(path, Permissions::from_mode(UNIX_MODE))?;
    Ok(bound.into_iter().next())
}

/// Locks the directory of a socket. Two programs that find the socket of a killed one must not both
/// replace it.
fn try_lock(path: &Path) -> io::Result<File> {
    let directory = File::open(path.parent().unwrap_or(Path::new("/")))?;
    match directory.try_lock() {
        Ok(()) => Ok(directory),
        Err(TryLockError::WouldBlock) => Err(io::ErrorKind::WouldBlock.into()),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Locks the directory as [`try_lock`] does, and waits for others. A program that has been stopped
/// with the lock does not keep this one from its start.
fn lock(path: &Path) -> io::Result<File> {
    let pause = Duration::from_millis(10);
    for _ in 0..LOCK_LIMIT.as_millis() / pause.as_millis() {
        match try_lock(path) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::thread::sleep(pause),
            locked => return locked,
        }
    }
    try_lock(path)
}

/// What is at the path of a socket.
#[derive(Debug, PartialEq, Eq)]
enum Probed {
    /// Nothing. A socket without a program has been removed.
    Free,
    /// A socket on which a program listens.
    Live,
}

/// Looks at the path of a socket, and removes a socket that a killed program has left. It does not
/// wait for a program that is stuck.
fn probe(path: &Path) -> io::Result<Probed> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Probed::Free),
        Err(error) => return Err(error),
        Ok(metadata) if !metadata.file_type().is_socket() => {
            return Err(io::Error::other("it exists and is not a socket"));
        }
        Ok(_) => {}
    }
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    match connect(&socket, &SocketAddrUnix::new(path)?) {
        Err(Errno::CONNREFUSED) => {
            fs::remove_file(path)?;
            Ok(Probed::Free)
        }
        // It has just been removed.
        Err(Errno::NOENT) => Ok(Probed::Free),
        // AGAIN: more clients wait than the program has accepted.
        Ok(()) | Err(Errno::AGAIN) => Ok(Probed::Live),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn only_a_socket_without_a_program_is_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.sock");
        let live = bind(&path).unwrap();
        assert!(live.is_some());
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, UNIX_MODE);
        assert!(bind(&path).unwrap().is_none());
        drop(live);
        assert!(path.exists(), "it is stale");
        assert!(bind(&path).unwrap().is_some());
        fs::remove_file(&path).unwrap();
        fs::write(&path, "").unwrap();
        let error = bind(&path).err().map(|error| error.to_string());
        assert_eq!(error.as_deref(), Some("it exists and is not a socket"));
    }

    #[test]
    fn a_program_that_does_not_accept_has_its_socket_still() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.sock");
        let stuck = UnixListener::bind(&path).unwrap();
        rustix::net::listen(&stuck, 0).unwrap();
        for _ in 0..3 {
            assert_eq!(probe(&path).unwrap(), Probed::Live);
        }
    }

    #[test]
    fn a_program_that_holds_the_lock_delays_the_others_for_a_limited_time() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.sock");
        let held = try_lock(&path).unwrap();
        assert_eq!(lock(&path).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        drop(held);
        assert!(lock(&path).is_ok());
    }
}
