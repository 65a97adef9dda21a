//! One thread for each connection, blocking reads and writes: the scheduler is the event loop.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

/// Enough for one read buffer; the default of 2 MB would be address space only, but ten thousand
/// times.
const STACK_BYTES: usize = 64 * 1024;

/// Serves until the listener fails or no thread can be had.
pub fn serve(listener: &TcpListener, response: Vec<u8>) -> io::Result<()> {
    let response: Arc<[u8]> = response.into();
    loop {
        let (connection, _) = match listener.accept() {
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
            accepted => accepted?,
        };
        let response = Arc::clone(&response);
        thread::Builder::new().stack_size(STACK_BYTES).spawn(move || {
            // A connection that breaks ends its thread and nothing else.
            let _ = answer_until_closed(connection, &response);
        })?;
    }
}

fn answer_until_closed(mut connection: TcpStream, response: &[u8]) -> io::Result<()> {
    let mut request = [0_u8; 16 * 1024];
    while connection.read(&mut request)? > 0 {
        connection.write_all(response)?;
    }
    Ok(())
}
