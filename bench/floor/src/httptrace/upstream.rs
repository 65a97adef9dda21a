//! The server behind the cache, with a blocking thread for each connection.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use httparse::{EMPTY_HEADER, Request, Status};
use kirin_floor::objects::ValueSizes;

/// The number and size of the objects that were sent. Requests for the count do not count.
#[derive(Default)]
struct Answered {
    answers: AtomicU64,
    bytes: AtomicU64,
}

/// Answers requests until the process is ended.
pub fn serve(port: u16, sizes: ValueSizes) -> io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
    let answered = Arc::new(Answered::default());
    loop {
        let (connection, _) = listener.accept()?;
        let answered = Arc::clone(&answered);
        std::thread::spawn(move || {
            // A client may disconnect at any time. This is no error.
            let _ = answer_all(connection, &answered, sizes);
        });
    }
}

fn answer_all(mut connection: TcpStream, answered: &Answered, sizes: ValueSizes) -> io::Result<()> {
    connection.set_nodelay(true)?;
    let mut input = Vec::new();
    let mut chunk = [0; 16 * 1024];
    loop {
        while let Some((length, path)) = request(&input)? {
            input.drain(..length);
            connection.write_all(&answer(&path, answered, sizes))?;
        }
        match connection.read(&mut chunk)? {
            0 => return Ok(()),
            read => input.extend_from_slice(&chunk[..read]),
        }
    }
}

/// Returns the length and the path of the first request, which has no body. Returns `None` if it is
/// not complete.
fn request(input: &[u8]) -> io::Result<Option<(usize, String)>> {
    let mut headers = [EMPTY_HEADER; 64];
    let mut request = Request::new(&mut headers);
    match request.parse(input).map_err(io::Error::other)? {
        Status::Complete(length) => Ok(Some((length, request.path.unwrap_or_default().to_owned()))),
        Status::Partial => Ok(None),
    }
}

fn answer(path: &str, answered: &Answered, sizes: ValueSizes) -> Vec<u8> {
    if path == "/count" {
        let body = format!("{} {}", answered.answers.load(SeqCst), answered.bytes.load(SeqCst));
        return format!(
            "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .into_bytes();
    }
    let Some(object) = path.strip_prefix("/object/").and_then(|number| number.parse().ok()) else {
        return b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_vec();
    };
    let size = sizes.of(object);
    answered.answers.fetch_add(1, SeqCst);
    answered.bytes.fetch_add(size as u64, SeqCst);
    let mut answer = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nCache-Control: public, max-age=86400\r\nContent-Length: {size}\r\n\r\n"
    )
    .into_bytes();
    answer.resize(answer.len() + size, b'x');
    answer
}
