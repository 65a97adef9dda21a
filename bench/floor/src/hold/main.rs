//! `kirin-hold`: keeps idle keep-alive connections open, so that their cost for the server can be
//! measured.
//!
//! Each connection makes one request, reads the response, and then does nothing until standard
//! input ends. At the end the program counts the connections that are still open. A server that
//! closes idle connections early only appears to need little memory. `bench/compare.py idle-memory`
//! runs this program.
#![forbid(unsafe_code)]

mod connection;

use std::io::{self, BufRead};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::ExitCode;

use clap::Parser;

use connection::open;

/// Opens keep-alive connections, makes one request on each, prints `holding N` and holds them until
/// standard input ends; then prints `open N closed N`.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// IP address and port of the server.
    address: SocketAddr,
    /// Number of connections to hold.
    #[arg(long, default_value_t = 10_000)]
    connections: usize,
    /// The path that each connection requests once.
    #[arg(long, default_value = "/")]
    path: String,
    /// Connections for each source address (127.0.0.2, 127.0.0.3, …). One address has 28,000 ports.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u16).range(1..))]
    per_source: u16,
}

fn main() -> ExitCode {
    match hold(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("kirin-hold: {error}");
            ExitCode::FAILURE
        }
    }
}

fn hold(arguments: &Arguments) -> io::Result<()> {
    let mut held = Vec::with_capacity(arguments.connections);
    for number in 0..arguments.connections {
        let source = source_of(number, arguments.per_source);
        let connection = open(source, arguments.address, &arguments.path).map_err(|error| {
            io::Error::new(error.kind(), format!("connection {number}: {error}"))
        })?;
        held.push(connection);
    }
    println!("holding {}", held.len());
    let mut ignored = String::new();
    while io::stdin().lock().read_line(&mut ignored)? > 0 {}
    let open = held.iter().filter(|connection| is_open(connection)).count();
    println!("open {open} closed {}", held.len() - open);
    Ok(())
}

/// Returns 127.0.0.2 for the first `per_source` connections, 127.0.0.3 for the next, and so on.
fn source_of(number: usize, per_source: u16) -> Ipv4Addr {
    let source = u32::try_from(number / usize::from(per_source)).unwrap_or(u32::MAX);
    Ipv4Addr::from_bits(Ipv4Addr::new(127, 0, 0, 2).to_bits().saturating_add(source))
}

/// Returns whether an idle connection is open: it has nothing to read, and no end.
fn is_open(connection: &TcpStream) -> bool {
    let nothing_yet = |error: io::Error| error.kind() == io::ErrorKind::WouldBlock;
    connection.set_nonblocking(true).is_ok() && connection.peek(&mut [0]).is_err_and(nothing_yet)
}

#[cfg(test)]
mod tests {
    use super::{is_open, source_of};
    use std::net::{Ipv4Addr, TcpListener, TcpStream};

    #[test]
    fn each_source_address_gets_its_share_of_connections() {
        assert_eq!(source_of(0, 10_000), Ipv4Addr::new(127, 0, 0, 2));
        assert_eq!(source_of(9_999, 10_000), Ipv4Addr::new(127, 0, 0, 2));
        assert_eq!(source_of(10_000, 10_000), Ipv4Addr::new(127, 0, 0, 3));
        assert_eq!(source_of(2_540, 10), Ipv4Addr::new(127, 0, 1, 0));
    }

    #[test]
    fn a_connection_the_server_closed_is_not_counted_as_open() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let client = TcpStream::connect(listener.local_addr().expect("bound")).expect("connected");
        let (server, _) = listener.accept().expect("accepted");
        assert!(is_open(&client));
        drop(server);
        client.set_nonblocking(false).expect("a socket");
        client.peek(&mut [0]).expect("the end arrives");
        assert!(!is_open(&client));
    }
}
