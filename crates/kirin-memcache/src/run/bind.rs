//! The sockets that the options ask for.

use std::fs;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::Path;

use rustix::fs::Mode;
use rustix::process::umask;
use socket2::{Domain, SockAddr, Socket, Type};
use tokio::net::{TcpListener, UnixListener};

use super::StartError;
use crate::memcached_options::{ListenAddress, Options};
use crate::serve::Listener;

/// The host listened on when there is no `-l`.
const LOOPBACK: &str = "127.0.0.1";

/// Names a file to which the ports are written, as memcached does it for its tests (`-p -1`).
const PORT_FILE_VARIABLE: &str = "MEMCACHED_PORT_FILENAME";

/// Bound sockets, not part of an event loop yet.
#[derive(Debug, Default)]
pub(super) struct Sockets {
    tcp: Vec<Socket>,
    unix: Vec<Socket>,
    tcp_port: u16,
}

impl Sockets {
    pub(super) fn bind(options: &Options) -> Result<Sockets, StartError> {
        let mut sockets = Sockets::default();
        if let Some(path) = &options.unix_socket {
            let at = |source| StartError::Bind { address: path.display().to_string(), source };
            sockets.unix.push(bind_unix(path, options).map_err(at)?);
            return Ok(sockets);
        }
        if options.port == 0 {
            return Err(StartError::NothingToListenOn);
        }
        let default = [ListenAddress { host: LOOPBACK.into(), port: None }];
        let addresses = if options.listen.is_empty() { &default[..] } else { &options.listen };
        for address in addresses {
            // A port of -1 is any free one.
            let port = address.port.unwrap_or(u16::try_from(options.port).unwrap_or(0));
            let named =
                |source| StartError::Bind { address: format!("{}:{port}", address.host), source };
            for address in (address.host.as_str(), port).to_socket_addrs().map_err(named)? {
                let socket = bind_tcp(address, options.backlog).map_err(named)?;
                let bound = socket.local_addr().map_err(named)?.as_socket();
                sockets.tcp_port = bound.map_or(port, |bound| bound.port());
                sockets.tcp.push(socket);
            }
        }
        if let Some(path) = std::env::var_os(PORT_FILE_VARIABLE) {
            sockets.write_ports(Path::new(&path))?;
        }
        Ok(sockets)
    }

    /// The same sockets for another loop.
    pub(super) fn share(&self) -> Result<Sockets, StartError> {
        let again = |sockets: &[Socket]| {
            sockets.iter().map(Socket::try_clone).collect::<io::Result<Vec<_>>>()
        };
        Ok(Sockets {
            tcp: again(&self.tcp).map_err(StartError::Loop)?,
            unix: again(&self.unix).map_err(StartError::Loop)?,
            tcp_port: self.tcp_port,
        })
    }

    pub(super) fn tcp_port(&self) -> u16 {
        self.tcp_port
    }

    /// The listeners, part of the event loop that is running.
    pub(super) fn into_listeners(self) -> io::Result<Vec<Listener>> {
        let mut listeners = Vec::new();
        for socket in self.tcp {
            listeners.push(Listener::Tcp(TcpListener::from_std(socket.into())?));
        }
        for socket in self.unix {
            listeners.push(Listener::Unix(UnixListener::from_std(socket.into())?));
        }
        Ok(listeners)
    }

    fn write_ports(&self, path: &Path) -> Result<(), StartError> {
        let wrong = |source| StartError::File { path: path.to_owned(), source };
        let mut text = String::new();
        for socket in &self.tcp {
            let Some(address) = socket.local_addr().map_err(wrong)?.as_socket() else { continue };
            let family = if address.is_ipv4() { "INET" } else { "INET6" };
            text.push_str(&format!("TCP {family}: {}\n", address.port()));
        }
        // Whoever waits for the file must not read half of it.
        let mut unfinished = path.as_os_str().to_owned();
        unfinished.push(".lck");
        fs::write(&unfinished, text).and_then(|()| fs::rename(&unfinished, path)).map_err(wrong)
    }
}

fn bind_tcp(address: SocketAddr, backlog: i32) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    if address.is_ipv6() {
        // IPv4 has its own socket when it is asked for.
        socket.set_only_v6(true)?;
    }
    socket.set_nonblocking(true)?;
    // Inherited by accepted sockets: a client that vanished does not hold its place for ever.
    socket.set_keepalive(true)?;
    socket.bind(&address.into())?;
    socket.listen(backlog)?;
    Ok(socket)
}

fn bind_unix(path: &Path, options: &Options) -> io::Result<Socket> {
    // A socket left by a process that was killed would be in the way; any other file stays.
    if fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket()) {
        fs::remove_file(path)?;
    }
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    // The mode is right from the first moment; nobody connects in between.
    let before = umask(Mode::from_raw_mode(!options.unix_mode & 0o777));
    let bound = socket.bind(&SockAddr::unix(path)?);
    umask(before);
    bound?;
    fs::set_permissions(path, fs::Permissions::from_mode(options.unix_mode))?;
    socket.listen(options.backlog)?;
    Ok(socket)
}

/// Removes our unix socket, which nobody can connect to any more.
pub(super) fn remove_unix(options: &Options, directory: &Path) {
    let Some(path) = &options.unix_socket else { return };
    if let Err(error) = fs::remove_file(directory.join(path)) {
        tracing::debug!(%error, path = %path.display(), "the unix socket is gone already");
    }
}
