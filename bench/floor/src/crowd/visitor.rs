//! A visitor with one connection at a time. It makes one request after another.

use std::io;
use std::rc::Rc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout_at};

use super::response::{self, Response};
use super::{Crowd, Failure, Outcome};

/// Makes all requests of a visitor, or as many as it can until `end`.
pub async fn visit(crowd: Rc<Crowd>, end: Instant) -> Outcome {
    let connection = if crowd.keep_alive { "" } else { "Connection: close\r\n" };
    let request =
        format!("GET {} HTTP/1.1\r\nHost: {}\r\n{connection}\r\n", crowd.path, crowd.address);
    let mut visitor = Visitor { crowd: &crowd, request, connection: None, received: Vec::new() };
    let mut outcome = Outcome::default();
    for number in 0..crowd.requests {
        if number > 0 && !crowd.pause.is_zero() {
            sleep(crowd.pause).await;
        }
        if visitor.finds_its_connection_ended() {
            outcome.reconnects += 1;
        }
        let begun = Instant::now();
        let deadline = end.min(begun + crowd.timeout);
        match timeout_at(deadline, visitor.ask()).await {
            Ok(Ok(())) => outcome.latencies.record(begun.elapsed()),
            failed => {
                visitor.connection = None;
                if Instant::now() >= end {
                    outcome.left_over = crowd.requests - number;
                    break;
                }
                outcome.fail(
                    failed.map_or(Failure::Timeout, |failed| failed.err().unwrap_or(Failure::Cut)),
                );
            }
        }
    }
    outcome
}

struct Visitor<'a> {
    crowd: &'a Crowd,
    request: String,
    connection: Option<TcpStream>,
    received: Vec<u8>,
}

impl Visitor<'_> {
    /// Returns whether the server has closed the kept connection, and forgets it then. A server may
    /// close it at any time between requests (RFC 9112 section 9.5). A client that knows this does
    /// not send another request on it.
    fn finds_its_connection_ended(&mut self) -> bool {
        let Some(connection) = &self.connection else { return false };
        let open = connection
            .try_read(&mut [0])
            .is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock);
        if !open {
            self.connection = None;
        }
        !open
    }

    /// Sends one request and reads its complete response.
    async fn ask(&mut self) -> Result<(), Failure> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => connect(self.crowd).await.map_err(|_| Failure::Connect)?,
        };
        connection.write_all(self.request.as_bytes()).await.map_err(|_| Failure::Unanswered)?;
        let Response { status, keeps } = self.read_response(&mut connection).await?;
        if keeps && self.crowd.keep_alive {
            self.connection = Some(connection);
        }
        if status == 200 { Ok(()) } else { Err(Failure::Status) }
    }

    async fn read_response(&mut self, connection: &mut TcpStream) -> Result<Response, Failure> {
        self.received.clear();
        let mut ended = false;
        loop {
            if let Some(response) = response::complete(&self.received, ended)? {
                return Ok(response);
            }
            ended = match connection.read_buf(&mut self.received).await {
                Ok(count) => count == 0,
                // A reset does no harm only after a complete response that ends with the
                // connection. In all other cases a response is lost.
                Err(_) => {
                    return Err(if self.received.is_empty() {
                        Failure::Unanswered
                    } else {
                        Failure::Cut
                    });
                }
            };
        }
    }
}

async fn connect(crowd: &Crowd) -> io::Result<TcpStream> {
    let connection = TcpStream::connect(crowd.address).await?;
    connection.set_nodelay(true)?;
    Ok(connection)
}
