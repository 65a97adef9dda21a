//! Finds which items of two lists are the same item, by what identifies them.

use std::collections::{HashMap, VecDeque};

/// Which items of an old and a new list belong together.
#[derive(Debug, PartialEq, Eq)]
pub struct Partners {
    /// For each new item the index of the old one. `None` if the item is added.
    pub old_of_new: Vec<Option<usize>>,
    /// The old items that are removed, in their order.
    pub removed: Vec<usize>,
}

/// What identifies an item. Several items may have the same identity.
pub type Identity<'a, T> = &'a dyn Fn(&T) -> String;

impl Partners {
    /// Finds the partners of `new` in `old`. The nth item belongs to the nth with the same
    /// identity. A later identity is for the items that have no partner by the earlier ones. The
    /// time grows with the number of items.
    pub fn find<T>(old: &[T], new: &[T], identities: &[Identity<'_, T>]) -> Self {
        let mut old_of_new = vec![None; new.len()];
        let mut is_taken = vec![false; old.len()];
        for identity in identities {
            let mut waiting: HashMap<String, VecDeque<usize>> = HashMap::new();
            for (index, item) in old.iter().enumerate().filter(|(index, _)| !is_taken[*index]) {
                waiting.entry(identity(item)).or_default().push_back(index);
            }
            for (item, partner) in new.iter().zip(&mut old_of_new) {
                if partner.is_some() || waiting.is_empty() {
                    continue;
                }
                *partner = waiting.get_mut(&identity(item)).and_then(VecDeque::pop_front);
                if let Some(index) = *partner {
                    is_taken[index] = true;
                }
            }
        }
        let removed = (0..old.len()).filter(|index| !is_taken[*index]).collect();
        Self { old_of_new, removed }
    }

    /// Returns whether the items that both lists have are in another order.
    pub fn is_reordered(&self) -> bool {
        !self.old_of_new.iter().flatten().is_sorted()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nth_item_belongs_to_the_nth_of_the_same_identity() {
        let whole = |text: &&str| (*text).to_owned();
        let first = |text: &&str| text[..1].to_owned();
        let (x, n) = (Some, None);
        for (old, new, old_of_new, removed, is_reordered) in [
            (vec!["a"], vec!["a"], vec![x(0)], vec![], false),
            (vec!["a", "b"], vec!["b", "a"], vec![x(1), x(0)], vec![], true),
            (vec!["a", "b"], vec!["c", "b"], vec![n, x(1)], vec![0], false),
            (vec!["a", "a"], vec!["a", "a", "a"], vec![x(0), x(1), n], vec![], false),
            (vec!["a1", "a2"], vec!["a2", "a3"], vec![x(1), x(0)], vec![], true),
            (vec!["a1", "b"], vec!["b", "a2", "a3"], vec![x(1), x(0), n], vec![], true),
            (vec![], vec!["a"], vec![n], vec![], false),
            (vec!["a"], vec![], vec![], vec![0], false),
        ] {
            let found = Partners::find(&old, &new, &[&whole, &first]);
            assert_eq!(found.is_reordered(), is_reordered, "{old:?} {new:?}");
            assert_eq!(found, Partners { old_of_new, removed }, "{old:?} {new:?}");
        }
    }
}
