//! One connection from a chosen address. It makes one request and reads the response to its end.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use memchr::memmem;
use socket2::{Domain, Protocol, Socket, Type};

/// The time in which a server must answer. Later than that is an error.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// The size limit of a response. A measurement of idle connections requests a small one.
const RESPONSE_LIMIT_BYTES: usize = 64 * 1024;

/// Connects from `source`, requests `path` and reads the complete response.
pub fn open(source: Ipv4Addr, server: SocketAddr, path: &str) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
    socket.bind(&SocketAddr::from((source, 0)).into())?;
    // A close sends a reset. Otherwise ten thousand ports in TIME_WAIT would be missing in the next
    // measurement.
    socket.set_linger(Some(Duration::ZERO))?;
    socket.connect(&server.into())?;
    let mut connection = TcpStream::from(socket);
    connection.set_read_timeout(Some(ANSWER_WITHIN))?;
    connection.write_all(format!("GET {path} HTTP/1.1\r\nHost: {server}\r\n\r\n").as_bytes())?;
    read_response(&mut connection)?;
    Ok(connection)
}

fn read_response(connection: &mut impl Read) -> io::Result<()> {
    let mut received = Vec::with_capacity(4096);
    let mut chunk = [0; 4096];
    loop {
        if let Some(length) = response_length(&received)? {
            return if received.len() == length {
                Ok(())
            } else {
                Err(unexpected("bytes after the response"))
            };
        }
        match connection.read(&mut chunk)? {
            0 => return Err(unexpected("the server closed before the response was complete")),
            _ if received.len() > RESPONSE_LIMIT_BYTES => {
                return Err(unexpected("the response is too large"));
            }
            count => received.extend_from_slice(&chunk[..count]),
        }
    }
}

/// Returns the length of the complete response as soon as `received` has all of it.
fn response_length(received: &[u8]) -> io::Result<Option<usize>> {
    let Some(head_length) = memmem::find(received, b"\r\n\r\n").map(|end| end + 4) else {
        return Ok(None);
    };
    let head = String::from_utf8_lossy(&received[..head_length]).to_ascii_lowercase();
    if head.split(' ').nth(1) != Some("200") {
        return Err(unexpected(head.lines().next().unwrap_or_default()));
    }
    if head.contains("\r\nconnection: close") {
        return Err(unexpected("the server does not keep the connection"));
    }
    let body_length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length:"))
        .and_then(|value| value.trim().parse::<usize>().ok())
        .ok_or_else(|| unexpected("a response without a length"))?;
    let length = head_length.saturating_add(body_length);
    Ok((received.len() >= length).then_some(length))
}

fn unexpected(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}

#[cfg(test)]
mod tests {
    use super::read_response;

    #[test]
    fn a_response_is_read_to_its_end_however_it_is_cut() {
        let response = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
        for cut in 1..response.len() {
            let mut stream = std::io::Read::chain(&response[..cut], &response[cut..]);
            read_response(&mut stream).unwrap_or_else(|error| panic!("cut at {cut}: {error}"));
        }
    }

    #[test]
    fn a_server_that_will_close_is_an_error() {
        for response in [
            "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
            "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n",
            "HTTP/1.1 200 OK\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort",
        ] {
            assert!(read_response(&mut response.as_bytes()).is_err(), "{response:?}");
        }
    }
}
