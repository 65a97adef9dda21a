//! The file with the ports of the memcached listeners. memcached writes one for its own tests, with
//! `-p -1`.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use crate::life::pid_file::replace_file;

/// The ports cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {source}", path.display())]
pub struct PortFileError {
    path: PathBuf,
    source: io::Error,
}

/// Writes a line for each address. A reader sees all lines or none.
pub fn write_ports(path: &Path, addresses: &[SocketAddr]) -> Result<(), PortFileError> {
    let line = |address: &SocketAddr| {
        let family = if address.is_ipv4() { "INET" } else { "INET6" };
        format!("TCP {family}: {}\n", address.port())
    };
    let text: String = addresses.iter().map(line).collect();
    replace_file(path, &text).map_err(|source| PortFileError { path: path.to_owned(), source })
}
