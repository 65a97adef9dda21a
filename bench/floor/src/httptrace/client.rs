//! One client with one kept connection. It sends requests in the order of the trace, and waits for
//! each response before the next request.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};

use httparse::{EMPTY_HEADER, Response, Status};
use kirin_floor::objects::ValueSizes;

/// A client that connects when it has no connection.
pub struct Client {
    address: SocketAddr,
    connection: Option<TcpStream>,
    input: Vec<u8>,
}

/// The number and size of the responses of the server behind the cache so far.
pub struct Count {
    /// The number of responses.
    pub answers: u64,
    /// The number of bytes in their bodies.
    pub bytes: u64,
}

impl Client {
    /// Creates a client of this server.
    pub fn new(address: SocketAddr) -> Self {
        Self { address, connection: None, input: Vec::new() }
    }

    /// Requests the count of the server behind the cache.
    pub fn count(&mut self) -> io::Result<Count> {
        let range = self.get("/count")?;
        let text = String::from_utf8_lossy(&self.input[range.0..range.0 + range.1]).into_owned();
        let mut numbers = text.split(' ').map(str::parse);
        match (numbers.next(), numbers.next()) {
            (Some(Ok(answers)), Some(Ok(bytes))) => Ok(Count { answers, bytes }),
            _ => Err(io::Error::other(format!("this is no count: {text}"))),
        }
    }

    /// Requests an object, and checks its size. Returns the size in bytes.
    pub fn object(&mut self, object: u32, sizes: ValueSizes) -> io::Result<u64> {
        let (_, size) = self.get(&format!("/object/{object}"))?;
        if size != sizes.of(object) {
            return Err(io::Error::other(format!("object {object} has {size} bytes")));
        }
        Ok(size as u64)
    }

    /// Sends a GET request. Returns where the body begins in the input, and its length in bytes.
    fn get(&mut self, path: &str) -> io::Result<(usize, usize)> {
        self.input.clear();
        let request = format!("GET {path} HTTP/1.1\r\nHost: bench\r\n\r\n");
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => connect(self.address)?,
        };
        connection.write_all(request.as_bytes())?;
        let mut chunk = [0; 64 * 1024];
        let (start, length, close) = loop {
            match head(&self.input)? {
                Some((start, length, close)) if self.input.len() >= start + length => {
                    break (start, length, close);
                }
                _ => {}
            }
            match connection.read(&mut chunk)? {
                0 => {
                    return Err(io::Error::other(format!(
                        "{path}: the connection ended within the answer"
                    )));
                }
                read => self.input.extend_from_slice(&chunk[..read]),
            }
        };
        if !close {
            self.connection = Some(connection);
        }
        Ok((start, length))
    }
}

/// Returns the length of the head, the `Content-Length`, and whether the connection ends after the
/// response. Returns `None` if the head is not complete.
fn head(input: &[u8]) -> io::Result<Option<(usize, usize, bool)>> {
    let mut headers = [EMPTY_HEADER; 64];
    let mut response = Response::new(&mut headers);
    let Status::Complete(start) = response.parse(input).map_err(io::Error::other)? else {
        return Ok(None);
    };
    if response.code != Some(200) {
        return Err(io::Error::other(format!("status {:?}", response.code)));
    }
    let value = |name: &str| {
        let field = response.headers.iter().find(|field| field.name.eq_ignore_ascii_case(name))?;
        std::str::from_utf8(field.value).ok()
    };
    let length = value("content-length").and_then(|length| length.parse().ok());
    let length = length.ok_or_else(|| io::Error::other("an answer without Content-Length"))?;
    let close = value("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
    Ok(Some((start, length, close)))
}

fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let connection = TcpStream::connect(address)?;
    connection.set_nodelay(true)?;
    Ok(connection)
}
