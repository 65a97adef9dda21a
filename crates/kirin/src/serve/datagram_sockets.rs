//! The UDP sockets of the program: those that the program before has handed over, those that it
//! binds, and what the next program gets.

use std::net::SocketAddr;

use kirin_server::listener::ListenError;
use kirin_server::{BindOptions, DatagramListener, OpenedDatagrams};
use kirin_sockets::DatagramSockets;

use crate::serve::sockets::SocketNumber;

/// The UDP sockets of the program.
#[derive(Default)]
pub struct ProgramDatagrams {
    inherited: Vec<(SocketAddr, DatagramSockets)>,
    for_successor: Vec<(SocketNumber, DatagramSockets)>,
}

impl ProgramDatagrams {
    /// Takes the sockets of the program before over.
    pub fn new(inherited: Vec<DatagramSockets>) -> Self {
        let with_address = |sockets: DatagramSockets| {
            let address = rustix::net::getsockname(sockets.sockets.first()?).ok()?;
            Some((SocketAddr::try_from(address).ok()?, sockets))
        };
        let inherited = inherited.into_iter().filter_map(with_address).collect();
        Self { inherited, for_successor: Vec::new() }
    }

    /// Opens the sockets at the address of a TCP socket, for each of `loops` event loops. The outer
    /// list is by loop. With `is_shared`, another process may have sockets there too.
    pub fn open(
        &mut self,
        listener: SocketNumber,
        address: SocketAddr,
        loops: usize,
        is_shared: bool,
    ) -> Result<Vec<Vec<DatagramListener>>, ListenError> {
        let found = self.inherited.extract_if(.., |(bound, _)| *bound == address).next();
        let adopted = found.and_then(|(_, sockets)| {
            let adopted = OpenedDatagrams::adopt(sockets, loops);
            let failed =
                |error| tracing::warn!(%address, %error, "HTTP/3 clients have to connect again");
            adopted.map_err(failed).ok()
        });
        let opened = match adopted {
            Some(adopted) => adopted,
            None => OpenedDatagrams::bind(address, loops, is_shared, &BindOptions::default())?,
        };
        self.for_successor.push((listener, opened.for_successor));
        Ok(opened.by_loop)
    }

    /// Closes what no listener has wanted. The program before goes on to receive on it.
    pub fn close_unwanted(&mut self) {
        self.inherited.clear();
    }

    /// Closes what this holds of a listener.
    pub fn close(&mut self, listener: SocketNumber) {
        self.for_successor.retain(|(of, _)| *of != listener);
    }

    /// Closes what this holds for a successor.
    pub fn drop_held(&mut self) {
        self.for_successor.clear();
    }

    /// Returns what a successor gets.
    pub fn for_successor(&self) -> impl Iterator<Item = &DatagramSockets> {
        self.for_successor.iter().map(|(_, sockets)| sockets)
    }
}
