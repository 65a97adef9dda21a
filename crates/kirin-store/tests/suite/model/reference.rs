//! The simplest possible store: a map without locks and without a budget. The answers of
//! `kirin-store` are compared with its answers.

use std::collections::BTreeMap;

/// An item of the reference.
#[derive(Clone, Debug, Default)]
pub struct Item {
    pub value: Vec<u8>,
    pub flags: u32,
    /// The second at which it expires, or `None` for never.
    pub expires: Option<u64>,
    pub cas: u64,
    pub stale: bool,
    pub won: bool,
    pub tags: Vec<u8>,
}

/// Items by key, and a delayed flush.
#[derive(Default)]
pub struct Reference {
    pub items: BTreeMap<Vec<u8>, Item>,
    pub flush_due: Option<u64>,
}

/// The conditions of a storage command.
#[derive(Clone, Debug)]
pub struct Storing {
    pub mode: Mode,
    pub compare_cas: Option<u64>,
    pub invalidate_older: bool,
    pub vivify: Option<Option<u64>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Set,
    Add,
    Replace,
    Append,
    Prepend,
}

/// The answer to a storage command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    Stored,
    NotStored,
    Exists,
    NotFound,
}

impl Reference {
    /// Drops the items that have expired at `now`.
    pub fn tick(&mut self, now: u64) {
        if self.flush_due.is_some_and(|due| due <= now) {
            self.flush_due = None;
            self.items.clear();
        }
        self.items.retain(|_, item| item.expires.is_none_or(|expires| expires > now));
    }

    /// Carries out any storage command. The caller fills in the CAS unique.
    pub fn store(&mut self, key: &[u8], new: Item, how: &Storing) -> Answer {
        let Some(old) = self.items.get_mut(key) else {
            let expires = match (how.mode, how.compare_cas, how.vivify) {
                (Mode::Append | Mode::Prepend, _, Some(expires)) => expires,
                (Mode::Append | Mode::Prepend, _, None) | (Mode::Replace, None, _) => {
                    return Answer::NotStored;
                }
                (Mode::Set | Mode::Replace, Some(_), _) => return Answer::NotFound,
                (Mode::Set | Mode::Add, ..) => new.expires,
            };
            self.items.insert(key.to_vec(), Item { expires, ..new });
            return Answer::Stored;
        };
        if how.mode == Mode::Add {
            return Answer::NotStored;
        }
        let matches = how.compare_cas.is_none_or(|cas| cas == old.cas);
        match how.mode {
            Mode::Append | Mode::Prepend if !matches => return Answer::Exists,
            Mode::Append => old.value.extend(new.value),
            Mode::Prepend => old.value.splice(..0, new.value).for_each(drop),
            _ if matches => *old = new,
            _ if how.invalidate_older
                && how.compare_cas.is_some_and(|cas| cas != 0 && cas < old.cas) =>
            {
                *old = Item { expires: old.expires, stale: true, won: old.won, ..new };
            }
            _ => return Answer::Exists,
        }
        Answer::Stored
    }

    /// Carries out `incr` and `decr`. Returns the new number, or `None` if the value is not a
    /// number.
    pub fn count(item: &mut Item, up: bool, delta: u64) -> Option<u64> {
        let text = String::from_utf8_lossy(&item.value).into_owned();
        let number: u64 = text.split_ascii_whitespace().next()?.parse().ok()?;
        if text.trim_start().starts_with('+') {
            return None;
        }
        let number = if up { number.wrapping_add(delta) } else { number.saturating_sub(delta) };
        item.value = format!("{number:<width$}", width = item.value.len()).into_bytes();
        Some(number)
    }

    /// Invalidates some items.
    pub fn invalidate(&mut self, hard: bool, concerns: impl Fn(&[u8], &Item) -> bool) {
        if hard {
            self.items.retain(|key, item| !concerns(key, item));
            return;
        }
        for (key, item) in &mut self.items {
            if concerns(key, item) {
                item.stale = true;
                item.won = false;
            }
        }
    }
}
