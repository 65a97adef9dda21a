//! One thread for each connection, with blocking reads and writes. The kernel's scheduler takes the
//! part of an event loop.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

/// The size of a stack, enough for one read buffer. The default is 2 MB of address space for each
/// of ten thousand threads.
const STACK_BYTES: usize = 64 * 1024;

/// Serves until the listener fails or a thread cannot be started.
pub fn serve(listener: &TcpListener, response: Vec<u8>) -> io::Result<()> {
    let response: Arc<[u8]> = response.into();
    loop {
        let (connection, _) = match listener.accept() {
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
            accepted => accepted?,
        };
        let response = Arc::clone(&response);
        thread::Builder::new().stack_size(STACK_BYTES).spawn(move || {
            // A broken connection ends only its own thread.
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
