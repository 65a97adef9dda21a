//! Converts the path of a request to a file name below the root. It decodes percent-encodings once,
//! resolves `.` and `..`, and merges `//`. It is pure: the file system is asked later.
//!
//! The rules are those of `kirin_http::request_path`, except for an encoded slash, because no file
//! name has one.
//!
//! The protection of a route must look at the decoded name too, because `/%61dmin` and `/admin` are
//! one file.

use std::borrow::Cow;

use http::StatusCode;
use kirin_http::percent::{self, RESERVED_BUT_SLASH};
use kirin_http::request_path::{BadPath, ResolvedPath, decode_path};

/// The name of a file or directory below the root.
///
/// `name` has no leading or trailing `/` and no empty, `.` or `..` segment. It is empty for the
/// root itself. It is bytes, because file names need not be UTF-8.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileName {
    /// The segments, joined by `/`.
    pub name: Vec<u8>,
    /// Whether the path ended in `/`, and so means a directory.
    pub directory: bool,
}

/// The reason why a path names no file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoFile {
    /// No file can have such a name (an encoded `/` in a segment, a control character). A path of
    /// an application may have it.
    #[error("path cannot be the name of a file")]
    Unnameable,
    /// The path is malformed for all places.
    #[error(transparent)]
    BadPath(#[from] BadPath),
}

impl NoFile {
    /// Returns the status code of the refusal. Returns `None` if the path may belong to another
    /// place.
    pub fn refusal(self) -> Option<StatusCode> {
        match self {
            NoFile::Unnameable => None,
            NoFile::BadPath(_) => Some(StatusCode::BAD_REQUEST),
        }
    }
}

impl FileName {
    /// Parses the path of a request target, without its query.
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

    /// Returns whether a segment starts with a dot (`.git`, `.env`, `.htpasswd`). Such files are
    /// not for visitors. `/.well-known/` is for them (RFC 8615), but no hidden name inside it.
    pub fn is_hidden(&self) -> bool {
        let mut segments = self.name.split(|byte| *byte == b'/');
        let first = segments.next().unwrap_or(b"");
        (first.starts_with(b".") && first != b".well-known")
            || segments.any(|s| s.starts_with(b"."))
    }

    /// Returns the path under which the open-file cache keeps this file. All spellings of a path
    /// have the same, so a client cannot fill the cache with spellings of one file. `raw` is the
    /// path that this name was parsed from. It is the key itself if it has no spelling to resolve.
    pub(crate) fn cache_key<'a>(&self, raw: &'a str) -> Cow<'a, str> {
        let is_plain = !raw.contains('%')
            && raw.strip_prefix('/').is_some_and(|path| {
                let (path, end) = match path.strip_suffix('/') {
                    Some(path) => (path, 1),
                    None => (path, 0),
                };
                path.len() == self.name.len() && raw.len() == 1 + path.len() + end
            });
        if is_plain { Cow::Borrowed(raw) } else { Cow::Owned(self.to_uri(self.directory)) }
    }

    /// Returns the canonical path. It has one leading `/` and a trailing `/`. Everything except RFC
    /// 3986's unreserved characters is percent-encoded. Redirects use it, so they never contain
    /// `//host` or a backslash, which browsers read as a slash.
    pub(crate) fn to_directory_uri(&self) -> String {
        self.to_uri(true)
    }

    fn to_uri(&self, is_directory: bool) -> String {
        let mut uri = String::with_capacity(self.name.len() + 8);
        uri.push('/');
        uri.push_str(&percent::encode(&self.name, RESERVED_BUT_SLASH));
        if is_directory && !self.name.is_empty() {
            uri.push('/');
        }
        uri
    }
}

#[cfg(test)]
#[path = "file_name_tests.rs"]
mod tests;
