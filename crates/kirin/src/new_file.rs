//! Writes files that must not be there yet.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;

/// Writes a new file. The error is for the operator. `advice` says what to do if the file is there.
pub fn write(path: &Path, text: &str, advice: &str) -> Result<(), String> {
    let file = OpenOptions::new().write(true).create_new(true).open(path);
    let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => is_there(path, advice),
        _ => format!("{}: {error}", path.display()),
    })
}

/// Returns the error for a file that is there already.
pub fn is_there(path: &Path, advice: &str) -> String {
    format!("{} is there already, and stays as it is: {advice}", path.display())
}
