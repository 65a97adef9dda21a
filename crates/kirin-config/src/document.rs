//! The parsed TOML of a configuration: where a value is, and the document without it.

use serde_spanned::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

/// The tables, keys and values of a file.
#[derive(Clone, Debug)]
pub struct Document<'a>(Spanned<DeTable<'a>>);

/// The way to a value: keys and numbers in arrays, from the outside in.
pub type ValuePath = Vec<PathStep>;

/// One step of the way to a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathStep {
    /// The key in a table.
    Key(String),
    /// The number in an array, from 0.
    Item(usize),
}

impl<'a> Document<'a> {
    /// Makes the document of a table.
    pub fn new(table: Spanned<DeTable<'a>>) -> Self {
        Self(table)
    }

    /// Returns the table of the file.
    pub fn root(&self) -> &DeTable<'a> {
        self.0.get_ref()
    }

    /// Returns the table of the file, to change it.
    pub fn root_mut(&mut self) -> &mut DeTable<'a> {
        self.0.get_mut()
    }

    /// Returns what serde reads the document with.
    pub fn deserializer(&self) -> toml::de::Deserializer<'a> {
        self.0.clone().into()
    }

    /// Returns the way to the innermost key or value at `offset` of the text, in bytes. It is empty
    /// if there is none.
    pub fn path_at(&self, offset: usize) -> ValuePath {
        let mut path = path_in_table(self.0.get_ref(), offset).unwrap_or_default();
        path.reverse();
        path
    }

    /// Returns the value at `path`.
    pub fn value_at(&self, path: &[PathStep]) -> Option<&DeValue<'a>> {
        let (PathStep::Key(key), rest) = path.split_first()? else { return None };
        let first = self.0.get_ref().get(key.as_str())?.get_ref();
        rest.iter().try_fold(first, |value, step| match (value, step) {
            (DeValue::Table(table), PathStep::Key(key)) => Some(table.get(key.as_str())?.get_ref()),
            (DeValue::Array(array), PathStep::Item(index)) => Some(array.get(*index)?.get_ref()),
            _ => None,
        })
    }

    /// Calls `take` with the way to each key and value, and with the offset at which it is written.
    /// What is inside of a value comes after it.
    pub fn for_each_place(&self, take: &mut impl FnMut(&[PathStep], usize)) {
        places_in_table(self.0.get_ref(), &mut ValuePath::new(), take);
    }

    /// Calls `change` with the value at `path`, and with the values of the same key in all other
    /// items of its arrays.
    pub fn change_alike(
        &mut self,
        path: &[PathStep],
        change: &mut impl FnMut(&mut Spanned<DeValue<'a>>),
    ) {
        let Some((PathStep::Key(key), rest)) = path.split_first() else { return };
        if let Some(value) = self.0.get_mut().get_mut(key.as_str()) {
            change_alike(value, rest, change);
        }
    }

    /// Takes the value at `path` out of the document. Returns whether there was one.
    pub fn remove(&mut self, path: &[PathStep]) -> bool {
        remove_from_table(self.0.get_mut(), path)
    }
}

/// Returns the way from the inside out, which is the order in which it is found.
fn path_in_table(table: &DeTable<'_>, offset: usize) -> Option<ValuePath> {
    for (key, value) in table {
        let inside = path_in_value(value.get_ref(), offset);
        let inside = inside.or_else(|| {
            let is_here = key.span().contains(&offset) || value.span().contains(&offset);
            is_here.then(ValuePath::new)
        });
        if let Some(mut path) = inside {
            path.push(PathStep::Key(key.get_ref().to_string()));
            return Some(path);
        }
    }
    None
}

fn path_in_value(value: &DeValue<'_>, offset: usize) -> Option<ValuePath> {
    match value {
        DeValue::Table(table) => path_in_table(table, offset),
        DeValue::Array(array) => array.iter().enumerate().find_map(|(index, item)| {
            let inside = path_in_value(item.get_ref(), offset);
            let inside = inside.or_else(|| item.span().contains(&offset).then(ValuePath::new));
            let mut path = inside?;
            path.push(PathStep::Item(index));
            Some(path)
        }),
        _ => None,
    }
}

fn places_in_table(
    table: &DeTable<'_>,
    path: &mut ValuePath,
    take: &mut impl FnMut(&[PathStep], usize),
) {
    for (key, value) in table {
        path.push(PathStep::Key(key.get_ref().to_string()));
        take(path, key.span().start);
        places_in_value(value, path, take);
        path.pop();
    }
}

fn places_in_value(
    value: &Spanned<DeValue<'_>>,
    path: &mut ValuePath,
    take: &mut impl FnMut(&[PathStep], usize),
) {
    take(path, value.span().start);
    match value.get_ref() {
        DeValue::Table(table) => places_in_table(table, path, take),
        DeValue::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                path.push(PathStep::Item(index));
                places_in_value(item, path, take);
                path.pop();
            }
        }
        _ => {}
    }
}

fn change_alike<'a>(
    value: &mut Spanned<DeValue<'a>>,
    path: &[PathStep],
    change: &mut impl FnMut(&mut Spanned<DeValue<'a>>),
) {
    let Some((step, rest)) = path.split_first() else { return change(value) };
    match (value.get_mut(), step) {
        (DeValue::Table(table), PathStep::Key(key)) => {
            if let Some(value) = table.get_mut(key.as_str()) {
                change_alike(value, rest, change);
            }
        }
        (DeValue::Array(items), PathStep::Item(_)) => {
            items.iter_mut().for_each(|item| change_alike(item, rest, change));
        }
        _ => {}
    }
}

fn remove_from_table(table: &mut DeTable<'_>, path: &[PathStep]) -> bool {
    let Some((PathStep::Key(key), rest)) = path.split_first() else { return false };
    match rest {
        [] => table.remove(key.as_str()).is_some(),
        _ => table
            .get_mut(key.as_str())
            .is_some_and(|value| remove_from_value(value.get_mut(), rest)),
    }
}

fn remove_from_value(value: &mut DeValue<'_>, path: &[PathStep]) -> bool {
    match (value, path.split_first()) {
        (DeValue::Table(table), _) => remove_from_table(table, path),
        (DeValue::Array(array), Some((PathStep::Item(index), []))) => {
            let mut others = DeArray::new();
            for (_, item) in array.iter().enumerate().filter(|(other, _)| other != index) {
                others.push(item.clone());
            }
            let was_there = others.len() < array.len();
            *array = others;
            was_there
        }
        (DeValue::Array(array), Some((PathStep::Item(index), rest))) => {
            array.get_mut(*index).is_some_and(|item| remove_from_value(item.get_mut(), rest))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_leads_to_the_innermost_key_which_can_be_removed() {
        let text = "a = 1\n[[b]]\nc = [1, { d = 2 }]\n[[b]]\ne = 3\n";
        let mut document = Document::new(DeTable::parse(text).unwrap());
        let key = |name: &str| PathStep::Key(name.into());
        let inner = document.path_at(text.find("2 }").unwrap());
        let steps = [key("b"), PathStep::Item(0), key("c"), PathStep::Item(1), key("d")];
        assert_eq!(inner, steps);
        let at_key = document.path_at(text.find("e =").unwrap());
        assert_eq!(at_key, [key("b"), PathStep::Item(1), key("e")]);
        let value =
            |path: &[PathStep]| document.value_at(path).and_then(|value| value.as_integer());
        assert_eq!(value(&inner).map(toml::de::DeInteger::as_str), Some("2"));
        assert!(value(&inner[..4]).is_none() && value(&[]).is_none());
        assert!(document.remove(&at_key) && !document.remove(&at_key));
        assert!(document.remove(&inner[..4]) && !document.remove(&inner));
        assert!(document.remove(&inner[..3]) && document.remove(&inner[..1]));
    }
}
