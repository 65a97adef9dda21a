//! The table of routes: finds the route of a request.
//!
//! Pure. A tree of segments, built once when the configuration is checked; all event loops share
//! it. A search goes down by the segments of the path, and back up until the conditions of a route
//! hold. It visits each node at most once, keeps no stack, and allocates nothing. So it costs no
//! more than the path is long for each pattern that begins like it.

use std::ops::ControlFlow;

use kirin_http::{Method, RequestHead, RequestPath};

use super::conditions::{Condition, RequestClient, RouteConditions};
use super::path_pattern::{Ending, PathPattern, Segment};
use super::text_map::TextMap;

/// A request whose route is looked for.
#[derive(Clone, Copy)]
pub struct Candidate<'a> {
    /// The path of `head`.
    pub path: &'a RequestPath<'a>,
    /// The head as it was sent.
    pub head: &'a RequestHead<'a>,
    /// The client.
    pub client: RequestClient<'a>,
}

/// The routes of a site by path and conditions. Routes are numbered in the order of the file.
#[derive(Debug)]
pub struct RouteTable {
    /// The nodes of the tree. The root is the first.
    nodes: Vec<Node>,
    conditions: Vec<RouteConditions>,
}

/// Two routes of which the second is never found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DuplicateRoute {
    /// The number of the first route.
    pub first: usize,
    /// The number of the second route, with the same paths and the same conditions.
    pub second: usize,
}

/// Why a route whose path matches answers a request or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// All its conditions hold.
    Holds,
    /// These conditions do not hold; each is a sentence for people.
    Fails(Vec<String>),
}

/// The routes of one path, in the order in which they are asked: those with conditions as in the
/// file, then the one without.
type RouteList = Vec<usize>;

/// The patterns that begin with the same segments.
#[derive(Debug, Default)]
struct Node {
    parent: usize,
    /// The nodes behind a literal segment.
    literals: TextMap<usize>,
    /// The node behind `{name}`.
    named: Option<usize>,
    exact: RouteList,
    exact_with_slash: RouteList,
    /// Suffixes of the last segment by their length in bytes, the longest first.
    suffixes: Vec<(usize, TextMap<RouteList>)>,
    below: RouteList,
}

const ROOT: usize = 0;

/// A table without routes.
impl Default for RouteTable {
    fn default() -> Self {
        Self { nodes: vec![Node::default()], conditions: Vec::new() }
    }
}

impl RouteTable {
    /// Builds the table. The errors are all routes that would never be found.
    pub fn new(
        routes: impl Iterator<Item = (PathPattern, RouteConditions)>,
    ) -> Result<Self, Vec<DuplicateRoute>> {
        let mut table = Self::default();
        let mut duplicates = Vec::new();
        for (number, (pattern, conditions)) in routes.enumerate() {
            let node = table.add_node_of(&pattern);
            let list = table.nodes[node].list_of(pattern.ending());
            let same = list.iter().find(|other| table.conditions[**other] == conditions);
            if let Some(first) = same {
                duplicates.push(DuplicateRoute { first: *first, second: number });
            }
            let is_last = |other: &usize| table.conditions[*other].is_empty();
            let at = match list.last().is_some_and(is_last) && !conditions.is_empty() {
                true => list.len() - 1,
                false => list.len(),
            };
            list.insert(at, number);
            table.conditions.push(conditions);
        }
        if duplicates.is_empty() { Ok(table) } else { Err(duplicates) }
    }

    /// Returns the number of the route that answers a request.
    pub fn find(&self, candidate: &Candidate<'_>) -> Option<usize> {
        self.visit(candidate.path, |route| {
            let conditions = &self.conditions[route];
            if conditions.is_empty() || conditions.hold(candidate.head, candidate.client) {
                ControlFlow::Break(route)
            } else {
                ControlFlow::Continue(())
            }
        })
    }

    /// Returns the number of the route that answers requests for `path` whose other properties are
    /// not known: the first one without conditions.
    pub fn find_by_path(&self, path: &RequestPath<'_>) -> Option<usize> {
        self.visit(path, |route| match self.conditions[route].is_empty() {
            true => ControlFlow::Break(route),
            false => ControlFlow::Continue(()),
        })
    }

    /// Returns the numbers of all routes that may answer a request for `path`, in order of
    /// precedence: those with conditions, up to the first one without.
    pub fn possible(&self, path: &RequestPath<'_>) -> Vec<usize> {
        let mut possible = Vec::new();
        self.visit(path, |route| {
            possible.push(route);
            match self.conditions[route].is_empty() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        });
        possible
    }

    /// Returns every route whose path matches, in order of precedence, and whether its conditions
    /// hold.
    pub fn explain(&self, candidate: &Candidate<'_>) -> Vec<(usize, Verdict)> {
        let Candidate { head, client, .. } = *candidate;
        let mut verdicts = Vec::new();
        self.visit(candidate.path, |route| {
            let unmet = self.conditions[route].unmet(head, client);
            let unmet: Vec<_> = unmet.map(|condition| condition.difference(head, client)).collect();
            let verdict = if unmet.is_empty() { Verdict::Holds } else { Verdict::Fails(unmet) };
            verdicts.push((route, verdict));
            ControlFlow::<()>::Continue(())
        });
        verdicts
    }

    /// Returns the methods that routes want which would otherwise answer the request. Empty if
    /// there are no such routes.
    pub fn wanted_methods(&self, candidate: &Candidate<'_>) -> Vec<Method> {
        let Candidate { head, client, .. } = *candidate;
        let mut wanted: Vec<Method> = Vec::new();
        self.visit(candidate.path, |route| {
            let mut unmet = self.conditions[route].unmet(head, client);
            if let (Some(Condition::Methods(methods)), None) = (unmet.next(), unmet.next()) {
                wanted.extend_from_slice(methods);
            }
            ControlFlow::<()>::Continue(())
        });
        wanted
    }

    /// Returns the node of a pattern, which is added if it is new.
    fn add_node_of(&mut self, pattern: &PathPattern) -> usize {
        let mut node = ROOT;
        for segment in pattern.segments() {
            let new = self.nodes.len();
            let parent = &mut self.nodes[node];
            let child = match segment {
                Segment::Name(_) => *parent.named.get_or_insert(new),
                Segment::Literal(text) => *parent.literals.get_or_insert(text.as_bytes(), new),
            };
            if child == new {
                self.nodes.push(Node { parent: node, ..Node::default() });
            }
            node = child;
        }
        node
    }

    /// Calls `judge` with the routes whose path matches, in order of precedence, until it breaks.
    fn visit<R>(
        &self,
        path: &RequestPath<'_>,
        mut judge: impl FnMut(usize) -> ControlFlow<R>,
    ) -> Option<R> {
        let segments = path.normalized();
        let segments = segments.strip_suffix(b"/").unwrap_or(segments);
        if !matches!(segments.first(), None | Some(b'/')) {
            return None; // The `*` of OPTIONS.
        }
        let has_slash = path.is_directory() || segments.is_empty();
        // `end` is where the segments end that led to the node.
        let (mut number, mut end, mut goes_down) = (ROOT, 0, true);
        loop {
            let node = &self.nodes[number];
            if goes_down && let Some((child, child_end)) = node.child(segments, end) {
                (number, end) = (child, child_end);
                continue;
            }
            let mut routes = node.routes(segments, end, has_slash);
            if let ControlFlow::Break(result) = routes.try_for_each(|route| judge(*route)) {
                return Some(result);
            }
            if number == ROOT {
                return None;
            }
            match self.nodes[node.parent].named {
                // The path behind the literal segment is done, so the one behind `{name}` follows.
                Some(named) if named != number => (number, goes_down) = (named, true),
                _ => {
                    end = memchr::memrchr(b'/', &segments[..end]).unwrap_or(0);
                    (number, goes_down) = (node.parent, false);
                }
            }
        }
    }
}

impl Node {
    /// Returns the most specific node below this one, and where its segment ends. The segments of
    /// this node end at `end`.
    #[inline]
    fn child(&self, path: &[u8], end: usize) -> Option<(usize, usize)> {
        if self.named.is_none() && self.literals.is_empty() {
            return None;
        }
        let rest = path[end..].strip_prefix(b"/")?;
        let length = memchr::memchr(b'/', rest).unwrap_or(rest.len());
        let literal = self.literals.get(&rest[..length]).copied();
        Some((literal.or(self.named)?, end + 1 + length))
    }

    /// Returns the routes that end at this node and match `path`, in order of precedence. The
    /// segments of this node end at `end`.
    fn routes<'a>(
        &'a self,
        path: &'a [u8],
        end: usize,
        has_slash: bool,
    ) -> impl Iterator<Item = &'a usize> {
        let exact: &[usize] = match (end == path.len(), has_slash) {
            (true, false) => &self.exact,
            (true, true) => &self.exact_with_slash,
            (false, _) => &[],
        };
        let suffixes = if end < path.len() { self.suffixes.as_slice() } else { &[] };
        // A suffix has no slash, so it never reaches into the segment before the last.
        let ending = |length: usize| path.len().checked_sub(length).map(|start| &path[start..]);
        let matching = suffixes
            .iter()
            .filter_map(move |(length, suffixes)| suffixes.get(ending(*length)?))
            .flatten();
        exact.iter().chain(matching).chain(&self.below)
    }

    /// Returns the list of routes with this ending, which is added if it is new.
    fn list_of(&mut self, ending: &Ending) -> &mut RouteList {
        let suffix = match ending {
            Ending::Below => return &mut self.below,
            Ending::Exact { slash: false } => return &mut self.exact,
            Ending::Exact { slash: true } => return &mut self.exact_with_slash,
            Ending::Suffix(suffix) => suffix.as_bytes(),
        };
        let length = suffix.len();
        let at = self.suffixes.partition_point(|(other, _)| *other > length);
        if self.suffixes.get(at).is_none_or(|(other, _)| *other != length) {
            self.suffixes.insert(at, (length, TextMap::default()));
        }
        self.suffixes[at].1.get_or_insert(suffix, RouteList::new())
    }
}

#[cfg(test)]
#[path = "route_table_tests.rs"]
mod tests;
