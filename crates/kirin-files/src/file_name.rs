//! From the path of a request to the name of a file below the root: percent-decoded once, `.` and
//! `..` resolved, `//` merged. Pure; the file system is asked later.
//!
//! The rules are those of `kirin_http::request_path`, but for an encoded slash: no file name has
//! one.
//!
//! The decoded name is what a route's protection has to look at too: `/%61dmin` and `/admin` are
//! one file.

use http::StatusCode;
use kirin_http::percent::{self, RESERVED_BUT_SLASH};
use kirin_http::request_path::{BadPath, ResolvedPath, decode_path};

/// The name of a file or directory below the root.
///
/// `name` has no leading or trailing `/` and no empty, `.` or `..` segment; it is empty for the
/// root itself. It is bytes, as file names are: nothing says that they are UTF-8.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileName {
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
    /// The path is malformed for everybody.
    #[error(transparent)]
    BadPath(#[from] BadPath),
}

impl NoFile {
    /// Returns the status code of the refusal; `None` if the path may be another place's.
    pub fn refusal(self) -> Option<StatusCode> {
        match self {
            NoFile::Unnameable => None,
            NoFile::BadPath(_) => Some(StatusCode::BAD_REQUEST),
        }
    }
}

impl FileName {
    /// Reads the path of a request target, without its query.
    pub fn parse(raw: &str) -> Result<Self, NoFile> {
        let Some(rest) = raw.strip_prefix('/') else { return Err(NoFile::Unnameable) };
        let segments = rest.split('/').map(|segment| decode_path(segment.as_bytes()));
        let segments: Vec<_> = segments.collect::<Result<_, _>>()?;
        let resolved = ResolvedPath::of_segments(segments.iter())?;
        let mut bytes = segments.iter().flat_map(|segment| segment.iter());
        if bytes.any(|byte| *byte == b'/' || byte.is_ascii_control()) {
            return Err(NoFile::Unnameable);
        }
        let mut name = resolved.path;
        name.remove(0);
        Ok(Self { name, directory: resolved.is_directory })
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
        let mut uri = String::with_capacity(self.name.len() + 8);
        uri.push('/');
        uri.push_str(&percent::encode(&self.name, RESERVED_BUT_SLASH));
        if !self.name.is_empty() {
            uri.push('/');
        }
        uri
    }
}

#[cfg(test)]
#[path = "file_name_tests.rs"]
mod tests;
