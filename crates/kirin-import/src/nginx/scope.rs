//! Which directives hold in a block: its own, and those of the blocks around it.

use std::collections::HashMap;
use std::rc::Rc;

use super::directive::Directive;

/// The directives of a block by their names.
#[derive(Debug)]
pub struct Level<'a> {
    /// All of them, in the order of the file.
    pub all: &'a [Directive],
    by_name: HashMap<&'a str, Vec<&'a Directive>>,
}

impl<'a> Level<'a> {
    /// Returns the level of a block.
    pub fn new(all: &'a [Directive]) -> Self {
        let mut by_name: HashMap<&str, Vec<&Directive>> = HashMap::new();
        for directive in all {
            by_name.entry(&directive.name).or_default().push(directive);
        }
        Self { all, by_name }
    }

    /// Returns the directives with this name.
    pub fn named(&self, name: &str) -> &[&'a Directive] {
        self.by_name.get(name).map_or(&[], Vec::as_slice)
    }
}

/// A block and the blocks around it.
#[derive(Debug, Clone)]
pub struct Scope<'a> {
    /// The levels, the outermost one first.
    levels: Vec<Rc<Level<'a>>>,
}

impl<'a> Scope<'a> {
    /// Returns the scope of the outermost block.
    pub fn new(all: &'a [Directive]) -> Self {
        Self { levels: vec![Rc::new(Level::new(all))] }
    }

    /// Returns the scope of a block inside this one.
    pub fn inner(&self, block: &'a [Directive]) -> Self {
        let mut levels = self.levels.clone();
        levels.push(Rc::new(Level::new(block)));
        Self { levels }
    }

    /// Returns the directives of the block itself.
    pub fn own(&self) -> &'a [Directive] {
        self.levels.last().map_or(&[], |level| level.all)
    }

    /// Returns the directives of the block itself with this name.
    pub fn own_named(&self, name: &str) -> &[&'a Directive] {
        self.levels.last().map_or(&[], |level| level.named(name))
    }

    /// Returns the directives with this name that hold here. A block that has one of them inherits
    /// none.
    pub fn list(&self, name: &str) -> &[&'a Directive] {
        let of = |level: &'_ Rc<Level<'a>>| !level.named(name).is_empty();
        self.levels.iter().rev().find(|level| of(level)).map_or(&[], |level| level.named(name))
    }

    /// Returns the directives that hold here of the innermost block that has one of these names.
    /// They are in the order of the file.
    pub fn list_of_any(&self, names: &[&str]) -> Vec<&'a Directive> {
        let has = |level: &&Rc<Level<'a>>| names.iter().any(|name| !level.named(name).is_empty());
        let Some(level) = self.levels.iter().rev().find(has) else { return Vec::new() };
        let mut found: Vec<_> = names.iter().flat_map(|name| level.named(name)).copied().collect();
        found.sort_by_key(|directive| directive.number);
        found
    }

    /// Returns the directive with this name that holds here.
    pub fn one(&self, name: &str) -> Option<&'a Directive> {
        self.list(name).last().copied()
    }

    /// Returns the first word of the directive with this name that holds here.
    pub fn word(&self, name: &str) -> Option<&'a str> {
        self.one(name).map(|directive| directive.arg(0))
    }

    /// Returns whether the directive with this name that holds here says `on`.
    pub fn is_on(&self, name: &str) -> bool {
        self.one(name).is_some_and(Directive::is_on)
    }

    /// Returns the directives with this name of all levels, the innermost ones first.
    pub fn of_all_levels(&self, name: &str) -> impl Iterator<Item = &'a Directive> {
        let levels = self.levels.iter().rev();
        levels.flat_map(|level| level.named(name).to_vec()).collect::<Vec<_>>().into_iter()
    }
}
