//! New connections to servers.

use std::io;
use std::time::Duration;

use kirin_faults::{Errno, Point};
use kirin_sockets::keepalive;
use rustls::pki_types::ServerName;
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsConnector;

use crate::address::ServerScheme;
use crate::failure::ProxyFailure;
use crate::server::{Endpoint, ProxiedServer};
use crate::socket::ServerStream;
use crate::tls::ClientTls;

static CONNECT: Point = Point::new(
    "server.connect",
    &[Errno::CONNREFUSED, Errno::TIMEDOUT, Errno::MFILE, Errno::ADDRNOTAVAIL],
);

/// Connects to `server` within `limit`, which includes the TLS handshake. With `http1_only`, HTTP/2
/// is not offered.
pub(crate) async fn connect(
    server: &ProxiedServer,
    tls: &ClientTls,
    http1_only: bool,
    limit: Duration,
) -> Result<ServerStream, ProxyFailure> {
    match tokio::time::timeout(limit, open(server, tls, http1_only)).await {
        Ok(Ok(stream)) => Ok(stream),
        Ok(Err(error)) => Err(ProxyFailure::Connect(error)),
        Err(_) => Err(ProxyFailure::ConnectTimeout),
    }
}

async fn open(
    server: &ProxiedServer,
    tls: &ClientTls,
    http1_only: bool,
) -> io::Result<ServerStream> {
    CONNECT.pass()?;
    let stream = match &server.endpoint {
        Endpoint::Unix(path) => return UnixStream::connect(path).await.map(ServerStream::Unix),
        Endpoint::Tcp(address) => TcpStream::connect(address).await?,
    };
    stream.set_nodelay(true)?;
    keepalive::set(&stream)?;
    if server.scheme() != ServerScheme::Https {
        return Ok(ServerStream::Tcp(stream));
    }
    let Some(config) = (if http1_only { &tls.http1_config } else { &tls.config }) else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "TLS is not set up"));
    };
    let name = match &tls.server_name {
        Some(name) => name.clone(),
        None => {
            let host = server.address.host();
            let host =
                host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(&host);
            ServerName::try_from(host.to_owned())
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?
        }
    };
    let stream = TlsConnector::from(std::sync::Arc::clone(config)).connect(name, stream).await?;
    Ok(ServerStream::Tls(Box::new(stream)))
}
