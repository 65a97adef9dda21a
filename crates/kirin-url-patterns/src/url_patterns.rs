//! The table of patterns as a caller sees it.

use crate::configured::ConfiguredPattern;
use crate::nodes::Label;
use crate::segment::VariableSegment;
use crate::tree::{MergedNumbers, PatternLimits, Tree};

/// A pattern of a table. A caller may keep its statistics in a `Vec` by [`Self::index`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PatternId(u32);

impl PatternId {
    /// The pattern `{other}` of paths that are no paths, or for which there is no room.
    pub const OTHER: Self = Self(0);

    /// Returns a small number, below [`UrlPatterns::most_patterns`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Two patterns that have become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Merge {
    /// The pattern that does not exist any more. Its number may be used again at once.
    pub from: PatternId,
    /// The pattern that has its paths now.
    pub into: PatternId,
}

/// The patterns of the paths that were seen, and those that the operator gave.
///
/// ```
/// use kirin_url_patterns::{ConfiguredPattern, PatternLimits, UrlPatterns};
///
/// let configured = vec![ConfiguredPattern::parse("/@{user}").unwrap()];
/// let mut patterns = UrlPatterns::new(configured, PatternLimits::default());
/// let mut counts = vec![0; patterns.most_patterns()];
/// for path in ["/memo/7?x=1", "/memo/8", "/@alice"] {
///     let pattern = patterns.pattern_of(path.as_bytes(), |merge| {
///         counts[merge.into.index()] += std::mem::take(&mut counts[merge.from.index()]);
///     });
///     counts[pattern.index()] += 1;
/// }
/// let seen: Vec<_> = patterns.iter().map(|id| (patterns.name(id), counts[id.index()])).collect();
/// let expected = [("{other}", 0), ("/@{user}", 1), ("/memo/{id}", 2)];
/// assert_eq!(seen, expected.map(|(name, count)| (name.to_owned(), count)));
/// ```
pub struct UrlPatterns {
    configured: Vec<ConfiguredPattern>,
    tree: Tree,
    limits: PatternLimits,
    /// Is empty between calls.
    merged: Vec<MergedNumbers>,
}

impl UrlPatterns {
    /// Creates a table. The first of the configured patterns that matches a path is its pattern.
    pub fn new(configured: Vec<ConfiguredPattern>, limits: PatternLimits) -> Self {
        Self { configured, tree: Tree::new(limits), limits, merged: Vec::new() }
    }

    /// Returns the pattern of a request target of the site with the number 0, for callers without
    /// sites. See [`Self::pattern_in`].
    pub fn pattern_of(&mut self, target: &[u8], fold: impl FnMut(Merge)) -> PatternId {
        self.pattern_in(0, target, fold)
    }

    /// Returns the pattern of a request target: a path with or without a query, or a URL.
    ///
    /// The words of one site do not merge those of another. The sites share the limits. `site`
    /// numbers them from 0 and must be small, because the table has a slot for each number.
    ///
    /// A found pattern belongs to one site. [`PatternId::OTHER`] and the configured patterns belong
    /// to all of them.
    ///
    /// `fold` gets each pair of patterns that this call merges. It must add the statistics of
    /// `from` to those of `into`, and clear them, because the number of `from` may be used again.
    #[inline]
    pub fn pattern_in(
        &mut self,
        site: u32,
        target: &[u8],
        mut fold: impl FnMut(Merge),
    ) -> PatternId {
        let Some((path, query)) = split_target(target) else { return PatternId::OTHER };
        let pattern = match configured_for(&self.configured, path, query) {
            Some((at, pattern)) if !pattern.has_found_values() => return id(1 + at),
            Some((at, pattern)) => {
                let Some(first) = VariableSegment::configured(at) else { return PatternId::OTHER };
                let values = pattern.found_values(query);
                self.tree.pattern_of_values(site, first, values, &mut self.merged)
            }
            None => self.tree.pattern_of(site, path, &mut self.merged),
        };
        if !self.merged.is_empty() {
            let first = self.first_found();
            for (from, into) in self.merged.drain(..) {
                fold(Merge { from: id(first + from as usize), into: id(first + into as usize) });
            }
        }
        pattern.map_or(PatternId::OTHER, |pattern| id(self.first_found() + pattern as usize))
    }

    /// Returns the pattern in which this table counts paths with the text of a found pattern of
    /// another table, if it has counted one. It may have merged a word that the other table has
    /// not: `/{name}.php` for `/index.php`.
    pub fn pattern_for(&self, site: u32, text: &str) -> Option<PatternId> {
        let (path, query) = split_target(text.as_bytes())?;
        let pattern = match configured_for(&self.configured, path, query) {
            Some((at, pattern)) if pattern.has_found_values() => {
                let (first, values) =
                    (VariableSegment::configured(at)?, pattern.found_values(query));
                self.tree.known_pattern_of_values(site, first, values)?
            }
            Some(_) => return None,
            None => self.tree.known_pattern(site, path)?,
        };
        Some(id(self.first_found() + pattern as usize))
    }

    /// Returns whether a pattern was found, and neither configured nor `{other}`.
    pub fn is_found(&self, pattern: PatternId) -> bool {
        pattern.index() >= self.first_found()
    }

    /// Returns the text of a pattern. It is `{other}` if the pattern does not exist any more.
    ///
    /// The text of a pattern changes when its words are merged. The pattern of such a text, in any
    /// table without configured patterns, is the same text unless words are merged there. So the
    /// tables of several event loops can be added up by text.
    pub fn name(&self, pattern: PatternId) -> String {
        let at = pattern.index();
        let configured = at.checked_sub(1).and_then(|at| self.configured.get(at));
        if let Some(configured) = configured {
            return configured.text().to_owned();
        }
        let found = at.checked_sub(self.first_found()).and_then(|at| u32::try_from(at).ok());
        match found.and_then(|found| self.tree.labels(found)) {
            Some(labels) => self.text_of(&labels),
            None => "{other}".to_owned(),
        }
    }

    fn text_of(&self, labels: &[&Label]) -> String {
        let configured = labels.first().and_then(|label| label.configured_index());
        if let Some(pattern) = configured.and_then(|at| self.configured.get(at)) {
            return pattern.with_values(labels.iter().skip(1).copied());
        }
        let mut text = String::new();
        for label in labels {
            text.push('/');
            label.write(&mut text);
        }
        text
    }

    /// Returns all patterns: `{other}`, those that are configured, and those that were found.
    pub fn iter(&self) -> impl Iterator<Item = PatternId> {
        let found = self.tree.numbers().map(|number| id(self.first_found() + number as usize));
        (0..self.first_found()).map(id).chain(found)
    }

    /// Returns how many patterns there can be. Each [`PatternId::index`] is smaller.
    pub fn most_patterns(&self) -> usize {
        self.first_found() + self.limits.patterns
    }

    /// Returns the bytes of memory that the table takes, without the configured patterns.
    pub fn memory_bytes(&self) -> usize {
        self.tree.memory_bytes() + self.merged.capacity() * size_of::<MergedNumbers>()
    }

    /// Returns the index of the first pattern that is found.
    fn first_found(&self) -> usize {
        1 + self.configured.len()
    }
}

fn id(index: usize) -> PatternId {
    PatternId(u32::try_from(index).unwrap_or(0))
}

/// Returns the first configured pattern that matches, with its index.
#[inline]
fn configured_for<'c>(
    configured: &'c [ConfiguredPattern],
    path: &[u8],
    query: &[u8],
) -> Option<(usize, &'c ConfiguredPattern)> {
    configured.iter().enumerate().find(|(_, pattern)| pattern.matches(path, query))
}

/// Returns the path and the query of a request target. The query has the fragment, if there is one.
/// Returns `None` for other targets, such as
/// `*` and `example.org:443`.
#[inline]
fn split_target(target: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = memchr::memchr2(b'?', b'#', target).unwrap_or(target.len());
    let (path, rest) = target.split_at(end);
    let query = rest.strip_prefix(b"?").unwrap_or_default();
    if path.first() == Some(&b'/') {
        return Some((path, query));
    }
    let rest = path.strip_prefix(b"http://").or_else(|| path.strip_prefix(b"https://"))?;
    Some((memchr::memchr(b'/', rest).map_or(&b"/"[..], |at| &rest[at..]), query))
}
