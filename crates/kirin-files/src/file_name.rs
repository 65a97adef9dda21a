//! From the path of a request to the name of a file below the root: percent-decoded once, `.` and
//! `..` resolved, `//` merged. Pure; the file system is asked later.
//!
//! The decoded name is what a route's protection has to look at too: `/%61dmin` and `/admin` are
//! one file.

use http::StatusCode;

/// The name of a file or directory below the root.
///
/// `name` has no leading or trailing `/` and no empty, `.` or `..` segment; it is empty for the
/// root itself. It is bytes, as file names are: nothing says that they are UTF-8.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestPath {
    /// Segments joined by `/`.
    pub name: Vec<u8>,
    /// Whether the path ended in `/`, and so means a directory.
    pub directory: bool,
}

/// Why a path names no file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoFile {
    /// A file cannot have such a name (an encoded `/` in a segment, a control character), but a
    /// path of an application may.
    #[error("path cannot be the name of a file")]
    Unnameable,
    /// `%` without two hexadecimal digits.
    #[error("path has a malformed percent-encoding")]
    Encoding,
    /// `%00`, which ends the name for the kernel and not for us.
    #[error("path has a NUL")]
    Nul,
    /// More `..` than segments before them.
    #[error("path climbs above the root")]
    AboveRoot,
}

impl NoFile {
    /// The status code of the refusal; `None` when the path is merely none of ours. nginx refuses
    /// the same three.
    pub fn refusal(self) -> Option<StatusCode> {
        match self {
            NoFile::Unnameable => None,
            NoFile::Encoding | NoFile::Nul | NoFile::AboveRoot => Some(StatusCode::BAD_REQUEST),
        }
    }
}

impl RequestPath {
    /// Reads the path of a request target, without its query.
    pub fn parse(raw: &str) -> Result<Self, NoFile> {
        let Some(rest) = raw.strip_prefix('/') else { return Err(NoFile::Unnameable) };
        let mut name = Vec::with_capacity(rest.len());
        let mut segment = Vec::new();
        let mut unnameable = false;
        let mut directory = true;
        for raw_segment in rest.split('/') {
            decode(raw_segment.as_bytes(), &mut segment)?;
            // As in RFC 3986 section 5.2.4, `/a/.` and `/a/b/..` mean the directory `/a/`.
            directory = matches!(&segment[..], b"" | b"." | b"..");
            match &segment[..] {
                b"" | b"." => {}
                b".." => {
                    if name.is_empty() {
                        return Err(NoFile::AboveRoot);
                    }
                    name.truncate(name.iter().rposition(|byte| *byte == b'/').unwrap_or(0));
                }
                segment => {
                    unnameable |=
                        segment.iter().any(|byte| *byte == b'/' || byte.is_ascii_control());
                    if !name.is_empty() {
                        name.push(b'/');
                    }
                    name.extend_from_slice(segment);
                }
            }
        }
        if unnameable {
            return Err(NoFile::Unnameable);
        }
        Ok(Self { name, directory })
    }

    /// Whether a segment starts with a dot (`.git`, `.env`, `.htpasswd`): such files are there for
    /// others than visitors. `/.well-known/` is for them (RFC 8615), though nothing hidden inside
    /// of it.
    pub fn is_hidden(&self) -> bool {
        let mut segments = self.name.split(|byte| *byte == b'/');
        let first = segments.next().unwrap_or(b"");
        (first.starts_with(b".") && first != b".well-known")
            || segments.any(|s| s.starts_with(b"."))
    }

    /// The canonical path: one leading `/`, everything but RFC 3986's unreserved characters
    /// percent-encoded, and a trailing `/`. Used in redirects, so neither `//host` nor a backslash
    /// (which browsers take for a slash) can come out of it.
    pub(crate) fn to_directory_uri(&self) -> String {
        const HEX: &[u8; 16] = b"0123456789ABCDEF";
        let mut uri = String::with_capacity(self.name.len() + 8);
        uri.push('/');
        for byte in &self.name {
            match byte {
                b'/' | b'-' | b'.' | b'_' | b'~' => uri.push(char::from(*byte)),
                byte if byte.is_ascii_alphanumeric() => uri.push(char::from(*byte)),
                byte => {
                    uri.push('%');
                    uri.push(char::from(HEX[usize::from(byte >> 4)]));
                    uri.push(char::from(HEX[usize::from(byte & 15)]));
                }
            }
        }
        if !self.name.is_empty() {
            uri.push('/');
        }
        uri
    }
}

/// Percent-decodes one segment into `out`.
fn decode(raw: &[u8], out: &mut Vec<u8>) -> Result<(), NoFile> {
    out.clear();
    let mut bytes = raw.iter();
    while let Some(byte) = bytes.next() {
        let byte = match byte {
            b'%' => {
                let high = bytes.next().and_then(hex_digit).ok_or(NoFile::Encoding)?;
                let low = bytes.next().and_then(hex_digit).ok_or(NoFile::Encoding)?;
                high << 4 | low
            }
            byte => *byte,
        };
        if byte == 0 {
            return Err(NoFile::Nul);
        }
        out.push(byte);
    }
    Ok(())
}

fn hex_digit(byte: &u8) -> Option<u8> {
    char::from(*byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

#[cfg(test)]
#[path = "request_path_tests.rs"]
mod tests;
