//! Finds field lines of a request with the same name, without comparing every name with every
//! other.
//!
//! Names may be long and nearly the same. Comparing 100 of them in a head of 32 KB took more than a
//! millisecond, and HTTP/2 sends such a head in a hundred bytes.

use std::collections::HashMap;

use httparse::Header;

/// The most fields that are compared one by one. Browsers send fewer.
const FEW_FIELDS: usize = 24;

/// Field lines by name.
pub(crate) enum SameName<'a> {
    /// Few field lines, which are compared.
    Few(&'a [Header<'a>]),
    /// For each field line: whether it is the first of its name, and the index of the next one.
    Many(Vec<(bool, Option<usize>)>),
}

impl<'a> SameName<'a> {
    pub(crate) fn from_fields(fields: &'a [Header<'a>]) -> Self {
        if fields.len() <= FEW_FIELDS {
            return Self::Few(fields);
        }
        let mut links = vec![(true, None); fields.len()];
        let mut last_of_name = HashMap::with_capacity(fields.len());
        for (index, field) in fields.iter().enumerate() {
            if let Some(before) = last_of_name.insert(field.name.to_ascii_lowercase(), index) {
                let before: usize = before;
                links[before].1 = Some(index);
                links[index].0 = false;
            }
        }
        Self::Many(links)
    }

    /// Returns whether no field line before `index` has its name.
    pub(crate) fn is_first(&self, index: usize) -> bool {
        match self {
            Self::Few(fields) => {
                !fields[..index].iter().any(|other| has_name(other, fields[index].name))
            }
            Self::Many(links) => links[index].0,
        }
    }

    /// Returns the field lines of the same name after `index`, in order.
    pub(crate) fn after(&self, index: usize) -> impl Iterator<Item = usize> {
        let mut at = index;
        std::iter::from_fn(move || {
            at = match self {
                Self::Few(fields) => {
                    let mut rest = fields.iter().enumerate().skip(at + 1);
                    rest.find(|(_, other)| has_name(other, fields[index].name))?.0
                }
                Self::Many(links) => links[at].1?,
            };
            Some(at)
        })
    }
}

fn has_name(field: &Header<'_>, name: &str) -> bool {
    field.name.len() == name.len() && field.name.eq_ignore_ascii_case(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_searches_find_the_same_names() {
        let names = ["a", "X-One", "b", "x-one", "A", "x-two", "X-ONE", "c"];
        for count in [8, 24, 25, 96] {
            let fields: Vec<_> = (0..count)
                .map(|index| Header { name: names[index % names.len()], value: b"" })
                .collect();
            let found = SameName::from_fields(&fields);
            assert_eq!(matches!(found, SameName::Few(_)), count <= FEW_FIELDS);
            for index in 0..count {
                let same =
                    |other: &usize| fields[*other].name.eq_ignore_ascii_case(fields[index].name);
                assert_eq!(
                    found.is_first(index),
                    !(0..index).any(|other| same(&other)),
                    "{index} of {count}"
                );
                let after: Vec<_> = (index + 1..count).filter(same).collect();
                assert_eq!(found.after(index).collect::<Vec<_>>(), after, "{index} of {count}");
            }
        }
    }
}
