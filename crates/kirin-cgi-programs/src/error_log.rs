//! The error output of a program, line by line in Kirin's log.

use std::sync::Arc;

use bytes::BytesMut;
use kirin_cgi::ErrorOutput;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;

/// Bytes read at once.
const PIECE_BYTES: usize = 8 * 1024;

/// The error output of one run of a program. Dropping it writes the last line.
struct ErrorLog {
    program: Arc<str>,
    output: ErrorOutput,
}

/// Writes what arrives to the log, until its end. The rest of too much output is read as well, so
/// that the program does not wait.
pub(crate) async fn log_errors(mut errors: pipe::Receiver, program: Arc<str>) {
    let mut log = ErrorLog { program, output: ErrorOutput::default() };
    let mut input = BytesMut::with_capacity(PIECE_BYTES);
    while matches!(errors.read_buf(&mut input).await, Ok(1..)) {
        log.take(&input);
        input.clear();
    }
}

impl ErrorLog {
    fn take(&mut self, bytes: &[u8]) {
        let program = &*self.program;
        self.output.take(bytes, |line| write(program, line));
    }
}

impl Drop for ErrorLog {
    fn drop(&mut self) {
        let program = &*self.program;
        let dropped = self.output.end(|line| write(program, line));
        if dropped > 0 {
            tracing::warn!(program, dropped, "more error output of a CGI program than is logged");
        }
    }
}

fn write(program: &str, line: &str) {
    tracing::warn!(program, line, "error output of a CGI program");
}
