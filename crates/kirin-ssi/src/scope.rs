//! Variables that a page has set, and what regular expressions have captured.

use crate::value::Value;

/// Variables of one page at most, and the bytes of all their values: a circle of includes must not
/// fill memory.
const MAX_VARIABLES: usize = 256;
const MAX_BYTES: usize = 1024 * 1024;

/// The variables of one rendering, shared by a page and what it includes, as nginx shares them.
/// Few, so a list is searched.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    variables: Vec<(Box<str>, Value)>,
    bytes: usize,
}

impl Scope {
    /// Whether nothing has been set.
    pub fn is_empty(&self) -> bool {
        self.variables.is_empty()
    }

    pub(crate) fn get(&self, name: &str) -> Option<Value> {
        self.variables.iter().find(|(other, _)| **other == *name).map(|(_, value)| value.clone())
    }

    /// Sets `name`; what is over the limits is not set.
    pub(crate) fn set(&mut self, name: &str, value: Value) {
        let place = self.variables.iter().position(|(other, _)| **other == *name);
        let before = place.map_or(0, |place| self.variables[place].1.bytes.len());
        let bytes = self.bytes - before + value.bytes.len();
        if bytes > MAX_BYTES || (place.is_none() && self.variables.len() >= MAX_VARIABLES) {
            return;
        }
        self.bytes = bytes;
        match place {
            Some(place) => self.variables[place].1 = value,
            None => self.variables.push((name.into(), value)),
        }
    }

    /// Takes over what `other` has.
    pub(crate) fn adopt(&mut self, other: &Self) {
        other.variables.iter().for_each(|(name, value)| self.set(name, value.clone()));
    }

    pub(crate) fn unset(&mut self, name: &str) {
        if let Some(place) = self.variables.iter().position(|(other, _)| **other == *name) {
            self.bytes -= self.variables.swap_remove(place).1.bytes.len();
        }
    }
}
