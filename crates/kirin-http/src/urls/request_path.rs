//! Paths of requests: decoded, and without `.`, `..` and empty segments.
//!
//! Two readers that decode a path differently are a security hole. So only this file decodes paths.
//! The one difference is an encoded slash. For routes and applications it is a slash, as it is in
//! `PATH_INFO`: `/a%2Fb` is below the route `/a`. For files it is not a slash, because no file name
//! contains one: `/a%2Fb` names no file (`kirin_files`).
//!
//! Kirin writes the result into `Location` fields and appends it to other prefixes. So it never
//! begins with `//`, which would name another host. It has no backslash, which browsers read as a
//! slash, and no `..`, which could leave the prefix.

use std::borrow::Cow;

use crate::percent::{self, NOT_IN_PATH};
use crate::request::RequestHead;

/// The path of a request.
#[derive(Clone, Debug)]
pub struct RequestPath<'a> {
    /// The path as it was sent: percent-encoded.
    sent: &'a str,
    /// The decoded and resolved path; `None` if it is the same as `sent`.
    resolved: Option<Cow<'a, ResolvedPath>>,
}

/// Why a path is refused. nginx refuses the same three.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadPath {
    /// A `%` is not followed by two hexadecimal digits.
    #[error("path has a malformed percent-encoding")]
    Encoding,
    /// The path has a `%00`. The kernel would end a file name there, and Kirin would not.
    #[error("path has a NUL")]
    Nul,
    /// The path has more `..` than segments before them.
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

    /// Returns the path that was sent as `sent`. `resolved` is its [`RequestPath::resolved`].
    pub fn from_resolved(sent: &'a str, resolved: Option<&'a ResolvedPath>) -> Self {
        Self { sent, resolved: resolved.map(Cow::Borrowed) }
    }

    /// Returns the decoded and resolved path; `None` if it is the same as the path that was sent.
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

    /// Returns whether the path ends in `/`, `/.` or `/..`, and so names a directory.
    pub fn is_directory(&self) -> bool {
        match &self.resolved {
            Some(resolved) => resolved.is_directory,
            None => self.sent.ends_with('/'),
        }
    }

    /// Returns the segment of the normalized path with this number, counted from 0.
    pub fn segment(&self, number: usize) -> Option<&[u8]> {
        let path = self.normalized();
        let rest = path[end_of_segments(path, number)..].strip_prefix(b"/")?;
        let end = memchr::memchr(b'/', rest).unwrap_or(rest.len());
        Some(&rest[..end]).filter(|segment| !segment.is_empty())
    }

    /// Returns the normalized path up to the end of this many segments, without a slash at its end.
    pub fn first_segments(&self, count: usize) -> &[u8] {
        let path = self.normalized();
        &path[..end_of_segments(path, count)]
    }

    /// Returns the rest of the path behind its first segments, percent-encoded. It is empty or
    /// begins with one `/`.
    pub fn rest_after(&self, segments: usize) -> Cow<'a, str> {
        match &self.resolved {
            Some(resolved) => {
                let path = resolved.with_slash();
                let rest = &path[end_of_segments(&path, segments)..];
                Cow::Owned(percent::encode(rest, NOT_IN_PATH).into_owned())
            }
            None => {
                let rest = &self.sent.as_bytes()[end_of_segments(self.sent.as_bytes(), segments)..];
                percent::encode(rest, NOT_IN_PATH)
            }
        }
    }

    /// Returns the path without `.` and `..`, percent-encoded. Returns `None` if it has neither.
    /// Applications and servers get this path. `/members/../x` arrives by the route of `/x`, and a
    /// dispatcher that compares prefixes must not treat it as a path below `/members`. Empty
    /// segments stay, because they mean something in a path such as `/http://a/`.
    pub fn without_dots(&self) -> Option<String> {
        let resolved = self.resolved.as_ref()?;
        resolved.had_dots.then(|| encoded(resolved))
    }

    /// Returns the path resolved and percent-encoded, if `.`, `..` or empty segments were taken
    /// out of it.
    pub fn if_resolved(&self) -> Option<String> {
        let resolved = self.resolved.as_ref()?;
        (resolved.had_dots || resolved.had_empty_segments).then(|| encoded(resolved))
    }
}

/// Returns path and query of `request` for another server. They are as they were sent, but `.` and
/// `..` are resolved, so that the server sees the path by which the route was found. `path` is the
/// path of `request`.
pub fn forwarded_target<'a>(request: &RequestHead<'a>, path: &RequestPath<'_>) -> Cow<'a, str> {
    let resolved = path.without_dots();
    if resolved.is_none() && (request.target.starts_with('/') || request.path == "*") {
        return Cow::Borrowed(request.target);
    }
    let mut target = resolved.unwrap_or_else(|| request.path.to_owned());
    if let Some(query) = request.query {
        target.push('?');
        target.push_str(query);
    }
    Cow::Owned(target)
}

/// Decodes a path, or a segment of one.
pub fn decode_path(sent: &[u8]) -> Result<Cow<'_, [u8]>, BadPath> {
    let decoded = percent::decode_strict(sent).ok_or(BadPath::Encoding)?;
    if memchr::memchr(0, &decoded).is_some() { Err(BadPath::Nul) } else { Ok(decoded) }
}

/// A path, decoded and resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedPath {
    /// The bytes. They begin with `/`, and end in `/` only for the root.
    pub path: Vec<u8>,
    /// Whether the path ended in `/`, `/.` or `/..`, and so names a directory.
    pub is_directory: bool,
    /// Whether the path had a segment `.` or `..`.
    pub had_dots: bool,
    /// Whether the path had an empty segment before its last.
    pub had_empty_segments: bool,
}

impl ResolvedPath {
    /// Joins decoded segments. It leaves out empty segments and `.`, and a `..` removes the segment
    /// before it (RFC 3986 section 5.2.4).
    pub fn of_segments(segments: impl Iterator<Item = impl AsRef<[u8]>>) -> Result<Self, BadPath> {
        let mut resolved = Self {
            path: Vec::new(),
            is_directory: false,
            had_dots: false,
            had_empty_segments: false,
        };
        let mut before_is_empty = false;
        for (index, segment) in segments.enumerate() {
            let segment = segment.as_ref();
            // The segment before the first slash is empty always, the one behind the last often.
            resolved.had_empty_segments |= index > 1 && before_is_empty;
            before_is_empty = segment.is_empty();
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

fn encoded(resolved: &ResolvedPath) -> String {
    percent::encode(&resolved.with_slash(), NOT_IN_PATH).into_owned()
}

/// Returns where the first segments of `path` end. It begins with `/` and has no empty segments.
fn end_of_segments(path: &[u8], count: usize) -> usize {
    let mut end = 0;
    for _ in 0..count {
        let Some(segment) = path.get(end + 1..) else { break };
        end += 1 + memchr::memchr(b'/', segment).unwrap_or(segment.len());
    }
    end
}

/// Returns whether decoding and resolving would leave the path as it is.
fn is_plain(path: &[u8]) -> bool {
    // Without an early end, the compiler compares many bytes at once.
    let Some((first, rest)) = path.split_first() else { return true };
    let changes =
        |byte: u8, next: u8| (next == b'%') | ((byte == b'/') & ((next == b'/') | (next == b'.')));
    let pairs = path.iter().zip(rest);
    let any_changes = pairs.fold(false, |found, (byte, next)| found | changes(*byte, *next));
    !any_changes && *first != b'%'
}

#[cfg(test)]
#[path = "request_path_tests.rs"]
mod tests;
