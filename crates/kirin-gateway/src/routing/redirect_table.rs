//! The table of `redirects`: many paths, each with its own target.
//!
//! Pure; made when the configuration is checked, and shared by all event loops. A request costs one
//! look-up for its path, and one for each depth at which the table has lines for everything below
//! a path.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use http::StatusCode;
use kirin_http::percent::{self, NOT_IN_PATH};
use kirin_http::{AnsweredBy, Body, RequestPath, Response};

use super::redirect::with_rest;

/// Separates path and query in a key. No path of a request has it.
const BEFORE_QUERY: u8 = 0;

/// The redirects of a route, with the status of lines that name none.
#[derive(Clone, Debug)]
pub struct Redirects {
    /// The table. Routes that name the same file share it.
    pub table: Arc<RedirectTable>,
    /// The status of lines that name none.
    pub default_status: StatusCode,
}

/// The lines of a file.
#[derive(Debug, Default)]
pub struct RedirectTable {
    /// The name of the file, for messages.
    pub name: String,
    lines: Vec<RedirectLine>,
    /// The lines for one path, by the path, decoded, and its query.
    exact: HashMap<Box<[u8]>, u32>,
    /// The lines for everything below a path, by the path without a slash at its end.
    below: HashMap<Box<[u8]>, u32>,
    /// Whether a line has a query.
    has_queries: bool,
    /// The most segments of a path in `below`.
    deepest: usize,
}

/// A redirect of a table.
#[derive(Debug)]
pub struct RedirectLine {
    /// The number of the line in the file, from 1.
    pub number: u32,
    /// The path or URI, percent-encoded.
    pub target: Box<str>,
    /// The status, if the line names one.
    pub status: Option<StatusCode>,
    /// The parts of the request that follow the target.
    pub kept: KeptParts,
}

/// The parts of a request that a redirect keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeptParts {
    /// None.
    Nothing,
    /// The query.
    Query,
    /// The path behind this number of segments, and the query.
    RestAndQuery {
        /// The number of segments.
        segments: u32,
    },
}

/// The requests that a line is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RedirectFrom {
    /// Those for this path, decoded, with a slash at its end if there is one. With a query only
    /// those that have it.
    Exact {
        /// The path.
        path: Vec<u8>,
        /// The query, as clients send it.
        query: Option<String>,
    },
    /// Those for this path and everything below, decoded, without a slash at its end.
    Below(Vec<u8>),
}

impl RedirectTable {
    /// Makes a table without lines. `name` is the name of its file.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// Adds a line. Returns the number of the line that is for the same requests, if there is one.
    pub fn add(&mut self, from: RedirectFrom, line: RedirectLine) -> Result<(), u32> {
        let (map, key) = match from {
            RedirectFrom::Exact { path, query: None } => (&mut self.exact, path),
            RedirectFrom::Exact { path, query: Some(query) } => {
                self.has_queries = true;
                (&mut self.exact, exact_key(&path, &query))
            }
            RedirectFrom::Below(path) => {
                self.deepest = self.deepest.max(segments(&path));
                (&mut self.below, path)
            }
        };
        match map.entry(key.into_boxed_slice()) {
            Entry::Occupied(taken) => Err(self.lines[*taken.get() as usize].number),
            Entry::Vacant(free) => {
                // A file of 4 billion lines is refused before.
                free.insert(u32::try_from(self.lines.len()).unwrap_or(u32::MAX));
                self.lines.push(line);
                Ok(())
            }
        }
    }

    /// Returns the number of lines.
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Returns whether the table has no lines.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Returns the line for a request: that of its path and query, or else that of its path, or
    /// else that of the longest path above.
    pub fn find(&self, path: &RequestPath<'_>, query: Option<&str>) -> Option<&RedirectLine> {
        if !path.sent().starts_with('/') {
            // The `*` of OPTIONS.
            return None;
        }
        let decoded = path.decoded();
        let with_query = query.filter(|_| self.has_queries);
        let with_query = with_query.and_then(|query| self.exact.get(&*exact_key(&decoded, query)));
        let exact = || self.exact.get(&*decoded);
        let below = || {
            if self.below.is_empty() {
                return None;
            }
            let depths = (0..=self.deepest).rev();
            depths.into_iter().find_map(|depth| self.below.get(path.first_segments(depth)))
        };
        let index = with_query.or_else(exact).or_else(below)?;
        self.lines.get(*index as usize)
    }

    /// Returns a target of a request for each line, percent-encoded, with the line. A line for
    /// everything below a path has two: the path, and one below.
    pub fn examples(&self) -> impl Iterator<Item = (String, &RedirectLine)> {
        let encode = |path: &[u8]| percent::encode(path, NOT_IN_PATH).into_owned();
        let line = |index: &u32| self.lines.get(*index as usize);
        let exact = self.exact.iter().filter_map(move |(key, index)| {
            let mut parts = key.splitn(2, |byte| *byte == BEFORE_QUERY);
            let mut target = encode(parts.next()?);
            if let Some(query) = parts.next() {
                target = format!("{target}?{}", String::from_utf8_lossy(query));
            }
            Some((target, line(index)?))
        });
        let below = self.below.iter().filter_map(move |(key, index)| {
            let (path, line) = (encode(key), line(index)?);
            let itself = if path.is_empty() { "/".to_owned() } else { path.clone() };
            Some([(itself, line), (format!("{path}/x"), line)])
        });
        exact.chain(below.flatten())
    }
}

impl RedirectLine {
    /// Returns where a request is redirected to.
    pub fn location(&self, path: &RequestPath<'_>, query: Option<&str>) -> String {
        let mut location = self.target.to_string();
        if let KeptParts::RestAndQuery { segments } = self.kept {
            location = with_rest(location, &path.rest_after(segments as usize));
        }
        if let (KeptParts::Query | KeptParts::RestAndQuery { .. }, Some(query)) = (self.kept, query)
        {
            location.push('?');
            location.push_str(query);
        }
        location
    }
}

impl Redirects {
    /// Returns the response to a request, if the table has a line for it.
    pub fn respond(&self, path: &RequestPath<'_>, query: Option<&str>) -> Option<Response> {
        let line = self.table.find(path, query)?;
        let status = line.status.unwrap_or(self.default_status);
        let mut response = Response::new(AnsweredBy::SERVER, status, Body::Empty);
        response.fields.push("Location", line.location(path, query));
        Some(response)
    }
}

fn exact_key(path: &[u8], query: &str) -> Vec<u8> {
    [path, &[BEFORE_QUERY], query.as_bytes()].concat()
}

/// Returns the number of segments of a path without a slash at its end.
pub fn segments(path: &[u8]) -> usize {
    memchr::memchr_iter(b'/', path).count()
}

#[cfg(test)]
#[path = "redirect_table_tests.rs"]
mod tests;
