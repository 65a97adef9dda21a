//! The nodes of the tree, and the index that finds a child by its parent and its label.

use std::hash::{BuildHasher, Hasher};

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use crate::segment::{PathSegment, VariableSegment};

/// The number that means "no node".
pub(crate) const NONE: u32 = u32::MAX;

/// The segment that a node stands for.
#[derive(Debug)]
pub(crate) enum Label {
    Literal(Box<[u8]>),
    Variable(VariableSegment),
}

impl Label {
    pub(crate) fn segment(&self) -> PathSegment<'_> {
        match self {
            Self::Literal(text) => PathSegment::Literal(text),
            Self::Variable(variable) => PathSegment::Variable(*variable),
        }
    }

    /// Returns whether it stands for a parameter that a query does not have.
    pub(crate) fn is_absent(&self) -> bool {
        matches!(self, Self::Variable(variable) if *variable == VariableSegment::ABSENT)
    }

    /// Returns the index of the configured pattern for which it stands.
    pub(crate) fn configured_index(&self) -> Option<usize> {
        match self {
            Self::Variable(variable) => variable.configured_index(),
            Self::Literal(_) => None,
        }
    }

    /// Appends the text.
    pub(crate) fn write(&self, out: &mut String) {
        match self {
            Self::Literal(word) => out.push_str(&String::from_utf8_lossy(word)),
            Self::Variable(variable) => variable.write(out),
        }
    }
}

/// A segment below the segments of its ancestors.
pub(crate) struct PatternNode {
    pub(crate) parent: u32,
    pub(crate) first_child: u32,
    pub(crate) next_sibling: u32,
    pub(crate) literal_children: usize,
    /// The number of paths that went through this node.
    pub(crate) hits: u64,
    pub(crate) label: Label,
    /// Whether new words below this node are variable.
    pub(crate) is_collapsed: bool,
    /// The number of the pattern that ends here.
    pub(crate) pattern: Option<u32>,
}

/// All nodes. Removed ones are used again.
pub(crate) struct Nodes {
    nodes: Vec<PatternNode>,
    free: Vec<u32>,
    index: HashTable<u32>,
    hasher: RandomState,
    literal_bytes: usize,
}

impl std::ops::Index<u32> for Nodes {
    type Output = PatternNode;

    fn index(&self, node: u32) -> &PatternNode {
        &self.nodes[node as usize]
    }
}

impl std::ops::IndexMut<u32> for Nodes {
    fn index_mut(&mut self, node: u32) -> &mut PatternNode {
        &mut self.nodes[node as usize]
    }
}

impl Nodes {
    /// The root that exists from the start.
    pub(crate) const ROOT: u32 = 0;

    /// Creates the root.
    pub(crate) fn new() -> Self {
        let root = PatternNode::new(NONE, Label::Variable(VariableSegment::EMPTY));
        Self {
            nodes: vec![root],
            free: Vec::new(),
            index: HashTable::new(),
            hasher: RandomState::default(),
            literal_bytes: 0,
        }
    }

    /// Adds a root: a node without a parent, which is never removed.
    pub(crate) fn add_root(&mut self) -> u32 {
        let root = PatternNode::new(NONE, Label::Variable(VariableSegment::EMPTY));
        self.place(root)
    }

    /// Returns the number of nodes in use.
    pub(crate) fn len(&self) -> usize {
        self.nodes.len() - self.free.len()
    }

    /// Returns the bytes of all literal labels.
    pub(crate) fn literal_bytes(&self) -> usize {
        self.literal_bytes
    }

    /// Returns the bytes of memory that the nodes take.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.nodes.capacity() * size_of::<PatternNode>()
            + self.free.capacity() * size_of::<u32>()
            // A slot of the index has its number and a control byte.
            + self.index.capacity() * (size_of::<u32>() + 1) * 8 / 7
            + self.literal_bytes
    }

    /// Returns the child of `parent` that stands for a segment. Each segment of each request asks
    /// this, and it has several callers, so the compiler needs a hint to inline it.
    #[inline]
    pub(crate) fn find(&self, parent: u32, segment: &PathSegment<'_>) -> Option<u32> {
        let hash = hash(&self.hasher, parent, segment);
        self.index.find(hash, |child| self.is(*child, parent, segment)).copied()
    }

    #[inline]
    fn is(&self, node: u32, parent: u32, segment: &PathSegment<'_>) -> bool {
        let node = &self[node];
        node.parent == parent && node.label.segment() == *segment
    }

    /// Adds a child, which must not exist.
    pub(crate) fn add(&mut self, parent: u32, label: Label) -> u32 {
        let number = self.place(PatternNode::new(parent, label));
        self.count_literal(number, true);
        self.enter(number);
        self.link(number, parent);
        number
    }

    /// Stores a node. Returns its number.
    fn place(&mut self, node: PatternNode) -> u32 {
        match self.free.pop() {
            Some(number) => {
                self[number] = node;
                number
            }
            None => {
                self.nodes.push(node);
                u32::try_from(self.nodes.len() - 1).unwrap_or(NONE)
            }
        }
    }

    /// Puts a node at the head of its parent's list of children.
    pub(crate) fn link(&mut self, node: u32, parent: u32) {
        self[node].next_sibling = self[parent].first_child;
        self[parent].first_child = node;
    }

    /// Takes all children out of a node's list, and returns them.
    pub(crate) fn unlink_children(&mut self, parent: u32) -> Vec<u32> {
        let mut children = Vec::new();
        let mut child = std::mem::replace(&mut self[parent].first_child, NONE);
        while child != NONE {
            children.push(child);
            child = self[child].next_sibling;
        }
        children
    }

    /// Removes an unlinked node without children.
    pub(crate) fn remove(&mut self, node: u32) {
        self.leave(node);
        self.count_literal(node, false);
        self[node].label = Label::Variable(VariableSegment::EMPTY);
        self.free.push(node);
    }

    /// Changes the label of a node. Its parent must have no child with the new one.
    pub(crate) fn relabel(&mut self, node: u32, variable: VariableSegment) {
        self.leave(node);
        self.count_literal(node, false);
        self[node].label = Label::Variable(variable);
        self.enter(node);
    }

    /// Moves an unlinked node below another parent, which must have no child with its label.
    pub(crate) fn move_below(&mut self, node: u32, parent: u32) {
        self.leave(node);
        self.count_literal(node, false);
        self[node].parent = parent;
        self.count_literal(node, true);
        self.enter(node);
        self.link(node, parent);
    }

    /// Counts a literal label in, or out.
    fn count_literal(&mut self, node: u32, is_added: bool) {
        let Label::Literal(text) = &self[node].label else { return };
        let (bytes, parent) = (text.len(), self[node].parent);
        if is_added {
            self.literal_bytes += bytes;
            self[parent].literal_children += 1;
        } else {
            self.literal_bytes -= bytes;
            self[parent].literal_children -= 1;
        }
    }

    fn enter(&mut self, node: u32) {
        let (nodes, hasher) = (&self.nodes, &self.hasher);
        let hash_of = |node: &u32| {
            let node = &nodes[*node as usize];
            hash(hasher, node.parent, &node.label.segment())
        };
        self.index.insert_unique(hash_of(&node), node, hash_of);
    }

    fn leave(&mut self, node: u32) {
        let (nodes, hasher) = (&self.nodes, &self.hasher);
        let hash_of = |node: &u32| {
            let node = &nodes[*node as usize];
            hash(hasher, node.parent, &node.label.segment())
        };
        if let Entry::Occupied(entry) =
            self.index.entry(hash_of(&node), |entered| *entered == node, hash_of)
        {
            entry.remove();
        }
    }
}

impl PatternNode {
    fn new(parent: u32, label: Label) -> Self {
        Self {
            parent,
            first_child: NONE,
            next_sibling: NONE,
            literal_children: 0,
            hits: 0,
            label,
            is_collapsed: false,
            pattern: None,
        }
    }
}

#[inline]
fn hash(hasher: &RandomState, parent: u32, segment: &PathSegment<'_>) -> u64 {
    let mut hasher = hasher.build_hasher();
    hasher.write_u32(parent);
    match segment {
        PathSegment::Literal(text) => hasher.write(text),
        PathSegment::Variable(variable) => hasher.write_u32(variable.code()),
    }
    hasher.finish()
}
