//! Paths of requests: decoded, and without `.`, `..` and empty segments.
//!
//! Two readers that take a path for different ones are a security hole, so that it is read here for
//! all of them. An encoded slash is the one thing that they do not agree about. For routes and
//! applications it is a slash, as it is in `PATH_INFO`: `/a%2Fb` is below the route `/a`. For files
//! it is none, because no file name has one: `/a%2Fb` names no file (`kirin_files`).
//!
//! What is made of a path stands in `Location` fields and is looked up below another prefix. So it
//! never begins with `//` (another host), never has a backslash (browsers take it for a slash) and
//! has no `..` that could climb out.

use std::borrow::Cow;

use crate::percent::{self, NOT_IN_PATH};
use crate::request::RequestHead;

/// The path of a request.
#[derive(Clone, Debug)]
pub struct RequestPath<'a> {
    /// As it was sent: percent-encoded.
    sent: &'a str,
    /// None if the path means what it says.
    resolved: Option<Cow<'a, ResolvedPath>>,
}

/// Why a path is refused. nginx refuses the same three.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadPath {
    /// A `%` has no two hexadecimal digits behind it.
    #[error("path has a malformed percent-encoding")]
    Encoding,
    /// There is a `%00`, which ends a name for the kernel but not for Kirin.
    #[error("path has a NUL")]
    Nul,
    /// There are more `..` than segments before them.
    #[error("path climbs above the root")]
    AboveRoot,
}

impl<'a> RequestPath<'a> {
    /// Reads the path of a request target, without its query.
    pub fn parse(sent: &'a str) -> Result<Self, BadPath> {
        if is_plain(sent.as_bytes()) {
            return Ok(Self { sent, resolved: None });
        }
        let decoded = decode_path(sent.as_bytes())?;
        let resolved = ResolvedPath::of_segments(decoded.split(|byte| *byte == b'/'))?;
        Ok(Self { sent, resolved: Some(Cow::Owned(resolved)) })
    }

    /// Returns the path that was sent as `sent`, of which [`RequestPath::resolved`] is known.
    pub fn from_resolved(sent: &'a str, resolved: Option<&'a ResolvedPath>) -> Self {
        Self { sent, resolved: resolved.map(Cow::Borrowed) }
    }

    /// Returns the path decoded and resolved; `None` if it means what it says.
    pub fn resolved(&self) -> Option<&ResolvedPath> {
        self.resolved.as_deref()
    }

    /// Returns the path as it was sent: percent-encoded.
    pub fn sent(&self) -> &'a str {
        self.sent
    }

    /// Returns the path as routes see it: decoded, and with `.`, `..` and `//` resolved, so that
    /// `/x/../admin` and `/%61dmin` come under the route of `/admin`. Places get the path as it was
    /// sent.
    pub fn normalized(&self) -> &[u8] {
        match &self.resolved {
            Some(resolved) => &resolved.path,
            None => self.sent.as_bytes(),
        }
    }

    /// Returns the normalized path with the slash at its end, if it had one.
    pub fn decoded(&self) -> Cow<'_, [u8]> {
        match &self.resolved {
            Some(resolved) => resolved.with_slash(),
            None if self.sent.starts_with('/') => Cow::Borrowed(self.sent.as_bytes()),
            // The `*` of OPTIONS.
            None => Cow::Owned([b"/", self.sent.as_bytes()].concat()),
        }
    }

    /// Returns what is left of the path below `prefix`, percent-encoded: empty, or with one `/` at
    /// its start. `prefix` is decoded and without a slash at its end; the path is below it by
    /// [`RequestPath::normalized`].
    pub fn rest_below(&self, prefix: &str) -> Cow<'a, str> {
        match &self.resolved {
            Some(resolved) => {
                let path = resolved.with_slash();
                let rest = path.strip_prefix(prefix.as_bytes()).unwrap_or(b"");
                Cow::Owned(percent::encode(rest, NOT_IN_PATH).into_owned())
            }
            None => {
                let rest = self.sent.strip_prefix(prefix).unwrap_or("");
                percent::encode(rest.as_bytes(), NOT_IN_PATH)
            }
        }
    }

    /// Returns the path without `.` and `..`, percent-encoded, if it has any. Applications get this
    /// one: `/members/../x` came by the route of `/x`, and must not be taken for something below
    /// `/members` by a dispatcher that compares beginnings.
    pub fn without_dots(&self) -> Option<String> {
        let resolved = self.resolved.as_ref().filter(|resolved| resolved.had_dots)?;
        Some(percent::encode(&resolved.with_slash(), NOT_IN_PATH).into_owned())
    }
}

/// Returns path and query of `request` as another server gets them: as they were sent, but for `.`
/// and `..`, so that it sees the path by which the route was found. `path` is that of `request`.
pub fn forwarded_target<'a>(request: &RequestHead<'a>, path: &RequestPath<'_>) -> Cow<'a, str> {
    let without_dots = path.without_dots();
    if without_dots.is_none() && (request.target.starts_with('/') || request.path == "*") {
        return Cow::Borrowed(request.target);
    }
    let mut target = without_dots.unwrap_or_else(|| request.path.to_owned());
    if let Some(query) = request.query {
        target.push('?');
        target.push_str(query);
    }
    Cow::Owned(target)
}

/// Returns a path, or a segment of one, decoded.
pub fn decode_path(sent: &[u8]) -> Result<Cow<'_, [u8]>, BadPath> {
    let decoded = percent::decode_strict(sent).ok_or(BadPath::Encoding)?;
    if memchr::memchr(0, &decoded).is_some() { Err(BadPath::Nul) } else { Ok(decoded) }
}

/// A path, decoded and resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedPath {
    /// Begins with `/`; has one at its end only if it is nothing else.
    pub path: Vec<u8>,
    /// Whether it ended in `/`, `/.` or `/..`, and so means a directory.
    pub is_directory: bool,
    /// Whether it had a segment `.` or `..`.
    pub had_dots: bool,
}

impl ResolvedPath {
    /// Puts decoded segments together, without empty ones and those that are `.`. A `..` takes the
    /// segment before it away (RFC 3986 section 5.2.4).
    pub fn of_segments(segments: impl Iterator<Item = impl AsRef<[u8]>>) -> Result<Self, BadPath> {
        let mut resolved = Self { path: Vec::new(), is_directory: false, had_dots: false };
        for segment in segments {
            let segment = segment.as_ref();
            resolved.is_directory = matches!(segment, b"" | b"." | b"..");
            resolved.had_dots |= matches!(segment, b"." | b"..");
            match segment {
                b"" | b"." => {}
                b".." => {
                    let parent = memchr::memrchr(b'/', &resolved.path);
                    resolved.path.truncate(parent.ok_or(BadPath::AboveRoot)?);
                }
                segment => {
                    resolved.path.push(b'/');
                    resolved.path.extend_from_slice(segment);
                }
            }
        }
        if resolved.path.is_empty() {
            resolved.path.push(b'/');
        }
        Ok(resolved)
    }

    /// Returns the path with the slash at its end, if it had one.
    fn with_slash(&self) -> Cow<'_, [u8]> {
        if self.is_directory && self.path.len() > 1 {
            Cow::Owned([&self.path, &b"/"[..]].concat())
        } else {
            Cow::Borrowed(&self.path)
        }
    }
}

/// Returns whether the path means what it says.
fn is_plain(path: &[u8]) -> bool {
    memchr::memchr(b'%', path).is_none()
        && !path.windows(2).any(|pair| pair == b"//" || pair == b"/.")
}

#[cfg(test)]
#[path = "request_path_tests.rs"]
mod tests;
