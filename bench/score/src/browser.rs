//! A small browser with one kept connection and cookies. It makes one request after another.

use std::io::{self, Write};
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::answer::{self, Answer, Framing, Head};
use crate::cookies::Cookies;

/// The size of the receive buffer in bytes. The largest page of the site fits in, so that it is
/// read with few calls.
const RECEIVED_BYTES: usize = 128 * 1024;

/// A browser. A new one has no cookies and no connection.
pub struct Browser {
    address: SocketAddr,
    /// The cookies that the site has set.
    pub cookies: Cookies,
    connection: Option<TcpStream>,
    request: Vec<u8>,
    received: Vec<u8>,
    unchunked: Vec<u8>,
}

/// A request of the browser.
#[derive(Clone, Copy)]
pub enum Request<'a> {
    /// A page or file, by its path.
    Get(&'a str),
    /// A file of which the browser has a version.
    GetUnlessSame(&'a str, &'a Version),
    /// A form: the path and the encoded fields.
    Post(&'a str, &'a str),
}

/// The validators of a file.
#[derive(Clone, Default)]
pub struct Version {
    /// The value of `ETag`, or an empty string.
    pub etag: String,
    /// The value of `Last-Modified`, or an empty string.
    pub modified: String,
}

impl Browser {
    /// Creates a browser for the site at this address.
    pub fn new(address: SocketAddr) -> Self {
        Self {
            address,
            cookies: Cookies::default(),
            connection: None,
            request: Vec::new(),
            received: Vec::with_capacity(RECEIVED_BYTES),
            unchunked: Vec::new(),
        }
    }

    /// Sends one request and reads its complete answer. Keeps the cookies that the answer sets.
    pub async fn ask(&mut self, request: Request<'_>) -> io::Result<Answer<'_>> {
        self.write_request(request)?;
        let mut connection = self.connection().await?;
        connection.write_all(&self.request).await?;
        let head = self.read(&mut connection).await?;
        if head.keeps {
            self.connection = Some(connection);
        }
        let (fields, rest) = self.received.split_at(head.length);
        let body = match head.framing {
            Framing::Exact(length) => rest.get(..length).unwrap_or_default(),
            Framing::Chunked => &self.unchunked,
            Framing::ToEnd => rest,
        };
        let answer = Answer { status: head.status, head: fields, body };
        for cookie in answer.fields("Set-Cookie") {
            self.cookies.set(cookie);
        }
        Ok(answer)
    }

    fn write_request(&mut self, request: Request<'_>) -> io::Result<()> {
        let (method, path) = match request {
            Request::Get(path) | Request::GetUnlessSame(path, _) => ("GET", path),
            Request::Post(path, _) => ("POST", path),
        };
        let to = &mut self.request;
        to.clear();
        write!(to, "{method} {path} HTTP/1.1\r\nHost: {}\r\n", self.address)?;
        if !self.cookies.is_empty() {
            to.extend_from_slice(b"Cookie: ");
            self.cookies.write(to);
            to.extend_from_slice(b"\r\n");
        }
        match request {
            Request::Get(_) => to.extend_from_slice(b"\r\n"),
            Request::GetUnlessSame(_, Version { etag, modified }) => {
                if !etag.is_empty() {
                    write!(to, "If-None-Match: {etag}\r\n")?;
                }
                if !modified.is_empty() {
                    write!(to, "If-Modified-Since: {modified}\r\n")?;
                }
                to.extend_from_slice(b"\r\n");
            }
            Request::Post(_, form) => {
                let length = form.len();
                write!(
                    to,
                    "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {length}\r\n\r\n{form}"
                )?;
            }
        }
        Ok(())
    }

    /// Returns the kept connection, or a new one. A server may close a kept connection at any time
    /// between requests (RFC 9112 section 9.5). A client that knows this does not send another
    /// request on it.
    async fn connection(&mut self) -> io::Result<TcpStream> {
        if let Some(kept) = self.connection.take()
            && kept.try_read(&mut [0]).is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
        {
            return Ok(kept);
        }
        let connection = TcpStream::connect(self.address).await?;
        connection.set_nodelay(true)?;
        Ok(connection)
    }

    async fn read(&mut self, connection: &mut TcpStream) -> io::Result<Head> {
        self.received.clear();
        let mut known: Option<Head> = None;
        let mut ended = false;
        loop {
            if known.is_none() {
                known = answer::head(&self.received).map_err(|_| io::ErrorKind::InvalidData)?;
            }
            if let Some(head) = known {
                let rest = self.received.get(head.length..).unwrap_or_default();
                let whole = match head.framing {
                    Framing::Exact(length) => rest.len() >= length,
                    Framing::Chunked => {
                        match answer::unchunk(rest).map_err(|_| io::ErrorKind::InvalidData)? {
                            Some(body) => {
                                self.unchunked = body;
                                true
                            }
                            None => false,
                        }
                    }
                    Framing::ToEnd => ended,
                };
                if whole {
                    return Ok(head);
                }
            }
            if ended {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            ended = connection.read_buf(&mut self.received).await? == 0;
        }
    }
}

impl Version {
    /// Takes the version from an answer. Returns `None` if the answer has no validator; then the
    /// file must be requested again without a condition.
    pub fn of(answer: &Answer<'_>) -> Option<Self> {
        let (etag, modified) = (answer.field("ETag"), answer.field("Last-Modified"));
        (!etag.is_empty() || !modified.is_empty())
            .then(|| Self { etag: etag.to_owned(), modified: modified.to_owned() })
    }
}
