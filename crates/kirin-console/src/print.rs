//! What commands print.

use std::io::{self, Write};

/// Prints to standard output.
pub fn print(text: &str) -> Result<(), String> {
    match io::stdout().write_all(text.as_bytes()) {
        // `kirin … | head` is no error.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result.map_err(|error| format!("cannot print: {error}")),
    }
}

/// Prints a line to standard error. It is lost if nobody can read it.
pub(crate) fn print_line(text: &str) {
    _ = writeln!(io::stderr(), "{text}");
}
