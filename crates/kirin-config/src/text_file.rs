//! The bytes of a file that is a configuration.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The most bytes of a file.
const MAX_BYTES: u64 = 16 << 20;

/// Returns the bytes of a file that is not too long.
pub fn read_limited(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > MAX_BYTES {
        false => Ok(bytes),
        true => Err(io::Error::other(format!("it has more than {} MB", MAX_BYTES >> 20))),
    }
}

/// Returns the bytes of a regular file. Another kind of file could make the program wait for ever.
pub fn read_regular(path: &Path) -> io::Result<Vec<u8>> {
    match path.metadata()? {
        file if file.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        file if !file.is_file() => Err(io::Error::other("it is not a regular file")),
        _ => read_limited(path),
    }
}

/// Returns bytes as text, which must be UTF-8.
pub fn text(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|error| io::Error::other(error.utf8_error()))
}
