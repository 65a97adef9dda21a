//! The tree of segments. A node with too many words below it merges the rare ones into a variable.

use crate::nodes::{Label, NONE, Nodes};
use crate::segment::{PathSegment, VariableSegment, may_be_structure};

/// The most segments of a path that have nodes of their own. The others are `{rest}`.
const DEPTH: usize = 12;

/// A word without digits stays as it is if at least one in this many paths of its directory has it,
/// when the directory gets too many words.
const HEAVY_SHARE: u64 = 32;

/// A word with fewer paths than this is rare.
const HEAVY_HITS: u64 = 8;

/// The number of words below a node that is always allowed.
const FEWEST_WORDS: usize = 4;

/// Bounds on the patterns that are found, and on the memory for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PatternLimits {
    /// The most words below a directory. Rare ones are merged into `{name}` when there are more. It
    /// is a quarter of this when half of the nodes or patterns are in use, and 4 when three
    /// quarters are.
    pub words: usize,
    /// The most segments in memory.
    pub nodes: usize,
    /// The most bytes of words in memory.
    pub word_bytes: usize,
    /// The most patterns that are found. Paths that need another one are `{other}`.
    pub patterns: usize,
}

impl Default for PatternLimits {
    fn default() -> Self {
        Self { words: 40, nodes: 8192, word_bytes: 128 * 1024, patterns: 2000 }
    }
}

/// The numbers of two patterns of which the first is now a part of the second.
pub(crate) type MergedNumbers = (u32, u32);

/// Calls `visit` with each segment of a path as the tree takes it, until it returns `None`. The
/// path begins with `/` and has no query. It has two callers, of which one is for each request.
#[inline(always)]
fn walk<'p>(path: &'p [u8], mut visit: impl FnMut(PathSegment<'p>) -> Option<()>) -> Option<()> {
    let mut rest = path;
    let mut depth = 0;
    while let Some((b'/', after)) = rest.split_first() {
        let end = after.iter().position(|byte| *byte == b'/').unwrap_or(after.len());
        let (segment, next) = after.split_at(end);
        let is_last = next.is_empty();
        rest = next;
        let segment = if depth == DEPTH {
            rest = b"";
            PathSegment::Variable(VariableSegment::REST)
        } else if !segment.is_empty() {
            PathSegment::of(segment)
        } else if is_last {
            PathSegment::Variable(VariableSegment::EMPTY)
        } else {
            // `//` counts as `/`.
            continue;
        };
        depth += 1;
        visit(segment)?;
    }
    Some(())
}

/// The tree, and the patterns that end in it.
pub(crate) struct Tree {
    nodes: Nodes,
    /// The root of each site, by its number. [`NONE`] for a site without a path so far.
    roots: Vec<u32>,
    /// The node of each pattern. `None` is a number that is free.
    patterns: Vec<Option<u32>>,
    free_patterns: Vec<u32>,
    limits: PatternLimits,
}

impl Tree {
    /// Creates an empty tree.
    pub(crate) fn new(limits: PatternLimits) -> Self {
        Self {
            nodes: Nodes::new(),
            roots: vec![Nodes::ROOT],
            patterns: Vec::new(),
            free_patterns: Vec::new(),
            limits,
        }
    }

    /// Returns the number of the pattern of a path of a site. The path begins with `/` and has no
    /// query. Returns `None` if there is no room. Patterns that are merged are added to `merged`.
    /// Their numbers may be given to other patterns from then on.
    ///
    /// The caller must take what was merged before it uses the returned number.
    pub(crate) fn pattern_of(
        &mut self,
        site: u32,
        path: &[u8],
        merged: &mut Vec<MergedNumbers>,
    ) -> Option<u32> {
        let mut node = self.root(site)?;
        walk(path, |segment| {
            node = self.step(node, &segment, merged)?;
            Some(())
        })?;
        self.pattern_at(node)
    }

    /// Returns the number of the pattern of a configured pattern and values of its parameters, as
    /// [`Self::pattern_of`] does for a path.
    pub(crate) fn pattern_of_values<'v>(
        &mut self,
        site: u32,
        configured: VariableSegment,
        values: impl Iterator<Item = PathSegment<'v>>,
        merged: &mut Vec<MergedNumbers>,
    ) -> Option<u32> {
        let root = self.root(site)?;
        let mut node = self.step(root, &PathSegment::Variable(configured), merged)?;
        for value in values {
            node = self.step(node, &value, merged)?;
        }
        self.pattern_at(node)
    }

    /// Returns the pattern that [`Self::pattern_of`] finds, if it exists already.
    pub(crate) fn known_pattern(&self, site: u32, path: &[u8]) -> Option<u32> {
        let mut node = self.known_root(site)?;
        walk(path, |segment| {
            node = self.known_child(node, &segment)?;
            Some(())
        })?;
        self.nodes[node].pattern
    }

    /// Returns the pattern that [`Self::pattern_of_values`] finds, if it exists already.
    pub(crate) fn known_pattern_of_values<'v>(
        &self,
        site: u32,
        configured: VariableSegment,
        values: impl Iterator<Item = PathSegment<'v>>,
    ) -> Option<u32> {
        let mut node =
            self.known_child(self.known_root(site)?, &PathSegment::Variable(configured))?;
        for value in values {
            node = self.known_child(node, &value)?;
        }
        self.nodes[node].pattern
    }

    /// Finds or adds a child, and counts a path through it.
    #[inline(always)]
    fn step(
        &mut self,
        parent: u32,
        segment: &PathSegment<'_>,
        merged: &mut Vec<MergedNumbers>,
    ) -> Option<u32> {
        let node = self.child(parent, segment, merged)?;
        let hits = &mut self.nodes[node].hits;
        *hits = hits.saturating_add(1);
        Some(node)
    }

    /// Returns the pattern that ends in a node, and gives it one if it has none.
    #[inline]
    fn pattern_at(&mut self, node: u32) -> Option<u32> {
        match self.nodes[node].pattern {
            Some(pattern) => Some(pattern),
            None => self.add_pattern(node),
        }
    }

    #[inline]
    fn known_root(&self, site: u32) -> Option<u32> {
        self.roots.get(site as usize).copied().filter(|root| *root != NONE)
    }

    /// Returns the root of a site, which is created if it has none yet.
    #[inline]
    fn root(&mut self, site: u32) -> Option<u32> {
        self.known_root(site).or_else(|| self.add_root(site))
    }

    #[cold]
    fn add_root(&mut self, site: u32) -> Option<u32> {
        let at = site as usize;
        if self.nodes.len() >= self.limits.nodes {
            return None;
        }
        if self.roots.len() <= at {
            self.roots.resize(at + 1, NONE);
        }
        self.roots[at] = self.nodes.add_root();
        Some(self.roots[at])
    }

    /// Returns the numbers of the patterns in use.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = u32> {
        (0..).zip(&self.patterns).filter_map(|(number, node)| node.is_some().then_some(number))
    }

    /// Returns the number of patterns in use.
    pub(crate) fn pattern_count(&self) -> usize {
        self.patterns.len() - self.free_patterns.len()
    }

    /// Returns the bytes of memory that the tree takes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.nodes.memory_bytes()
            + self.roots.capacity() * size_of::<u32>()
            + self.patterns.capacity() * size_of::<Option<u32>>()
            + self.free_patterns.capacity() * size_of::<u32>()
    }

    /// Returns the labels of a pattern in use, from the root on.
    pub(crate) fn labels(&self, pattern: u32) -> Option<Vec<&Label>> {
        let mut node = (*self.patterns.get(pattern as usize)?)?;
        let mut labels = Vec::new();
        while self.nodes[node].parent != NONE {
            labels.push(&self.nodes[node].label);
            node = self.nodes[node].parent;
        }
        labels.reverse();
        Some(labels)
    }

    /// Finds or adds a child, and merges words if there are too many.
    fn child(
        &mut self,
        parent: u32,
        segment: &PathSegment<'_>,
        merged: &mut Vec<MergedNumbers>,
    ) -> Option<u32> {
        if let Some(child) = self.nodes.find(parent, segment) {
            return Some(child);
        }
        match *segment {
            PathSegment::Variable(variable) => self.add(parent, Label::Variable(variable)),
            PathSegment::Literal(word) => {
                if !self.nodes[parent].is_collapsed && !self.is_full_of_words(parent, word) {
                    return self.add(parent, Label::Literal(word.into()));
                }
                if !self.nodes[parent].is_collapsed {
                    self.collapse(parent, merged);
                }
                let variable = VariableSegment::for_word(word);
                self.nodes
                    .find(parent, &PathSegment::Variable(variable))
                    .or_else(|| self.add(parent, Label::Variable(variable)))
            }
        }
    }

    /// Returns the child that [`Self::child`] finds, if it exists already.
    fn known_child(&self, parent: u32, segment: &PathSegment<'_>) -> Option<u32> {
        self.nodes.find(parent, segment).or_else(|| match *segment {
            PathSegment::Literal(word) if self.nodes[parent].is_collapsed => {
                self.nodes.find(parent, &PathSegment::Variable(VariableSegment::for_word(word)))
            }
            _ => None,
        })
    }

    fn is_full_of_words(&self, parent: u32, word: &[u8]) -> bool {
        self.nodes[parent].literal_children >= self.most_words()
            || self.nodes.literal_bytes() + word.len() > self.limits.word_bytes
    }

    /// Returns the most words below a node. It becomes smaller when the tree fills up.
    fn most_words(&self) -> usize {
        let is_used = |part: usize, of: usize| {
            self.nodes.len() * of >= self.limits.nodes * part
                || self.pattern_count() * of >= self.limits.patterns * part
        };
        if is_used(3, 4) {
            FEWEST_WORDS
        } else if is_used(1, 2) {
            (self.limits.words / 4).max(FEWEST_WORDS)
        } else {
            self.limits.words
        }
    }

    fn add(&mut self, parent: u32, label: Label) -> Option<u32> {
        (self.nodes.len() < self.limits.nodes).then(|| self.nodes.add(parent, label))
    }

    fn add_pattern(&mut self, node: u32) -> Option<u32> {
        let pattern = match self.free_patterns.pop() {
            Some(pattern) => pattern,
            None if self.patterns.len() < self.limits.patterns => {
                self.patterns.push(None);
                u32::try_from(self.patterns.len() - 1).ok()?
            }
            None => return None,
        };
        self.patterns[pattern as usize] = Some(node);
        self.nodes[node].pattern = Some(pattern);
        Some(pattern)
    }

    /// Merges the words below a node that are rare or have digits. New words below it are variable
    /// from now on.
    fn collapse(&mut self, parent: u32, merged: &mut Vec<MergedNumbers>) {
        self.nodes[parent].is_collapsed = true;
        let children = self.nodes.unlink_children(parent);
        let hits = |tree: &Self, child: u32| match tree.nodes[child].label {
            Label::Literal(_) => tree.nodes[child].hits,
            Label::Variable(_) => 0,
        };
        let total: u64 = children.iter().map(|child| hits(self, *child)).sum();
        let heavy = HEAVY_HITS.max(total.div_ceil(HEAVY_SHARE));
        let mut targets = Vec::new();
        for child in children {
            let rare = match &self.nodes[child].label {
                Label::Literal(word)
                    if self.nodes[child].hits < heavy || !may_be_structure(word) =>
                {
                    Some(VariableSegment::for_word(word))
                }
                _ => None,
            };
            let target =
                rare.and_then(|variable| self.nodes.find(parent, &PathSegment::Variable(variable)));
            match (rare, target) {
                (_, Some(target)) => {
                    self.merge(child, target, merged);
                    if !targets.contains(&target) {
                        targets.push(target);
                    }
                    continue;
                }
                (Some(variable), None) => self.nodes.relabel(child, variable),
                (None, None) => {}
            }
            self.nodes.link(child, parent);
        }
        for target in targets {
            self.settle(target, merged);
        }
    }

    /// Merges words below a node that has got children of others, if that makes too many.
    fn settle(&mut self, node: u32, merged: &mut Vec<MergedNumbers>) {
        let words = self.nodes[node].literal_children;
        if words > self.most_words() || self.nodes[node].is_collapsed && words > 0 {
            self.collapse(node, merged);
        }
    }

    /// Adds an unlinked node and all below it to another one, and removes it. The caller settles
    /// the other one.
    fn merge(&mut self, from: u32, into: u32, merged: &mut Vec<MergedNumbers>) {
        let mut twins = Vec::new();
        for child in self.nodes.unlink_children(from) {
            match self.nodes.find(into, &self.nodes[child].label.segment()) {
                Some(twin) => {
                    self.merge(child, twin, merged);
                    twins.push(twin);
                }
                None => self.nodes.move_below(child, into),
            }
        }
        let gone = &self.nodes[from];
        let (hits, is_collapsed, pattern) = (gone.hits, gone.is_collapsed, gone.pattern);
        self.nodes.remove(from);
        let target = &mut self.nodes[into];
        target.hits = target.hits.saturating_add(hits);
        target.is_collapsed |= is_collapsed;
        match (pattern, target.pattern) {
            (Some(old), Some(kept)) => {
                self.patterns[old as usize] = None;
                self.free_patterns.push(old);
                merged.push((old, kept));
            }
            (Some(moved), None) => {
                target.pattern = Some(moved);
                self.patterns[moved as usize] = Some(into);
            }
            (None, _) => {}
        }
        for twin in twins {
            self.settle(twin, merged);
        }
    }
}
