//! Variables that a page has set, and captures of regular expressions.

use crate::value::VariableValue;

/// The most variables of one page, and the most bytes of all their values. A cycle of includes must
/// not fill memory.
const MAX_VARIABLES: usize = 256;
const MAX_BYTES: usize = 1024 * 1024;

/// The variables of one rendering. A page and its includes share them, as in nginx. They are few,
/// so the code searches a list.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    variables: Vec<(Box<str>, VariableValue)>,
    bytes: usize,
}

impl Scope {
    /// Returns whether no variable is set.
    pub fn is_empty(&self) -> bool {
        self.variables.is_empty()
    }

    pub(crate) fn get(&self, name: &str) -> Option<VariableValue> {
        self.variables.iter().find(|(other, _)| **other == *name).map(|(_, value)| value.clone())
    }

    /// Sets `name`, unless that exceeds the limits.
    pub(crate) fn set(&mut self, name: &str, value: VariableValue) {
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

    /// Takes over the variables of `other`.
    pub(crate) fn adopt(&mut self, other: &Self) {
        other.variables.iter().for_each(|(name, value)| self.set(name, value.clone()));
    }

    pub(crate) fn unset(&mut self, name: &str) {
        if let Some(place) = self.variables.iter().position(|(other, _)| **other == *name) {
            self.bytes -= self.variables.swap_remove(place).1.bytes.len();
        }
    }
}
