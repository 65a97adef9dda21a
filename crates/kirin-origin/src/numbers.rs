//! What this Kirin knows of purges: it decides whether an item of the server may be served.
//!
//! Each purge draws a number from one counter on the server. Each item says under which number it
//! was made. An item is dead if all items, a prefix of its key or one of its tags were purged hard
//! under a greater number, and stale if softly.
//!
//! Prefixes are known completely, up to the number [`Numbers::complete_up_to`]. Tags are known as
//! far as items were read that carry them. What is known is true as long as no invalidation of it
//! has come; dropping it is always safe.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use parking_lot::{Mutex, RwLock};

use crate::encoding::Purged;

/// The most bytes of names in the table of tags. Beyond that it begins again.
const TAG_NAMES_BYTES: usize = 8 << 20;

/// What a tag takes in the table beside its name, about.
const TAG_ENTRY_BYTES: usize = 64;

/// What the purges make of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// The item may be served.
    Fresh,
    /// The item may be served as one that is stale since a purge with this number.
    Stale {
        /// The number.
        since: u64,
    },
    /// The item is dead, and stays so until somebody writes it again.
    Dead,
    /// The item may not be served, because not all of its purges are known.
    Unproven,
}

/// The numbers of purges that are known.
#[derive(Debug, Default)]
pub struct Numbers {
    /// The greatest number of any purge that this Kirin has heard of.
    learned: AtomicU64,
    prefixes: RwLock<KnownPrefixes>,
    tags: Mutex<KnownTags>,
}

#[derive(Debug, Default)]
struct KnownPrefixes {
    /// All purges of prefixes up to this number are known.
    complete_up_to: u64,
    /// The purge of all items.
    all: Purged,
    by_prefix: HashMap<Bytes, Purged>,
    /// The lengths that occur.
    lengths: Vec<usize>,
}

#[derive(Debug, Default)]
struct KnownTags {
    purged: HashMap<Bytes, Purged>,
    bytes: usize,
}

impl Numbers {
    /// Returns the greatest number that this Kirin has ever heard of, on whatever connection.
    pub fn learned(&self) -> u64 {
        self.learned.load(Ordering::SeqCst)
    }

    /// Learns the number of a purge.
    pub fn learn(&self, number: u64) {
        self.learned.fetch_max(number, Ordering::SeqCst);
    }

    /// Begins to count at the number of a purge of all items. No earlier purge matters any more.
    /// The table that the server reports then is no news, so copies that were kept meanwhile stay.
    pub fn begin_at(&self, number: u64) {
        self.learned.store(number, Ordering::SeqCst);
        let all = Purged { hard: number, soft: 0 };
        *self.prefixes.write() =
            KnownPrefixes { complete_up_to: number, all, ..KnownPrefixes::default() };
    }

    /// Forgets the purges, because nobody reports them any more.
    pub fn forget(&self) {
        *self.prefixes.write() = KnownPrefixes::default();
        *self.tags.lock() = KnownTags::default();
    }

    /// Returns the number up to which all purges of prefixes are known.
    pub fn complete_up_to(&self) -> u64 {
        self.prefixes.read().complete_up_to
    }

    /// Takes over the table of prefixes as it was when the counter was at `number`. The empty
    /// prefix stands for all items. Returns the prefixes that were purged since the last table.
    pub fn take_table(
        &self,
        number: u64,
        table: impl IntoIterator<Item = (Bytes, Purged)>,
    ) -> Vec<Bytes> {
        let mut next = KnownPrefixes { complete_up_to: number, ..KnownPrefixes::default() };
        for (prefix, purged) in table {
            if prefix.is_empty() {
                next.all = purged;
            } else {
                next.by_prefix.insert(prefix, purged);
            }
        }
        next.lengths = next.by_prefix.keys().map(Bytes::len).collect();
        next.lengths.sort_unstable();
        next.lengths.dedup();
        self.learn(number);
        let mut known = self.prefixes.write();
        // Another reader may have taken over a later table.
        if known.complete_up_to > number {
            return Vec::new();
        }
        let mut purged: Vec<Bytes> = next
            .by_prefix
            .iter()
            .filter(|(prefix, purged)| known.by_prefix.get(*prefix) != Some(*purged))
            .map(|(prefix, _)| prefix.clone())
            .collect();
        if next.all != known.all {
            purged = vec![Bytes::new()];
        }
        *known = next;
        purged
    }

    /// Returns the purges of those of `tags` that are known, and the other tags.
    pub fn look_up<'a>(
        &self,
        tags: impl Iterator<Item = &'a Bytes>,
    ) -> (HashMap<Bytes, Purged>, Vec<Bytes>) {
        let tags_known = self.tags.lock();
        let (mut known, mut unknown) = (HashMap::new(), Vec::new());
        for tag in tags {
            match tags_known.purged.get(tag) {
                Some(purged) => _ = known.insert(tag.clone(), *purged),
                None => unknown.push(tag.clone()),
            }
        }
        unknown.sort_unstable();
        unknown.dedup();
        (known, unknown)
    }

    /// Learns the purges of a tag, unless an invalidation of the tag has crossed the answer, which
    /// `has_changed` says. It is asked while nobody looks up or forgets a tag: otherwise another
    /// reader could find an old answer before it is forgotten.
    pub fn learn_tag(&self, tag: &Bytes, purged: Purged, has_changed: impl FnOnce() -> bool) {
        let mut tags = self.tags.lock();
        if has_changed() {
            return;
        }
        if tags.bytes > TAG_NAMES_BYTES {
            *tags = KnownTags::default();
        }
        // The name may be a slice of a large reply.
        if tags.purged.insert(Bytes::copy_from_slice(tag), purged).is_none() {
            tags.bytes += tag.len() + TAG_ENTRY_BYTES;
        }
    }

    /// Forgets the purges of a tag.
    pub fn forget_tag(&self, tag: &[u8]) {
        let mut tags = self.tags.lock();
        if tags.purged.remove(tag).is_some() {
            tags.bytes -= tag.len() + TAG_ENTRY_BYTES;
        }
    }

    /// Judges an item that was made under a number. `purged_tags` has the purges of its tags. The
    /// item is unproven if one is missing there, or if the table of prefixes is not complete up to
    /// `wanted`, because another connection has begun meanwhile.
    pub fn judge<'a>(
        &self,
        key: &[u8],
        tags: impl Iterator<Item = &'a Bytes>,
        purged_tags: &HashMap<Bytes, Purged>,
        made: u64,
        wanted: u64,
    ) -> Judgement {
        let mut newest = Purged::default();
        let mut add = |purged: Purged| {
            newest.hard = newest.hard.max(purged.hard);
            newest.soft = newest.soft.max(purged.soft);
        };
        {
            let known = self.prefixes.read();
            if known.complete_up_to < wanted {
                return Judgement::Unproven;
            }
            add(known.all);
            for length in &known.lengths {
                if let Some(purged) = key.get(..*length).and_then(|name| known.by_prefix.get(name))
                {
                    add(*purged);
                }
            }
        }
        for tag in tags {
            match purged_tags.get(tag) {
                Some(purged) => add(*purged),
                None => return Judgement::Unproven,
            }
        }
        match newest {
            Purged { hard, .. } if hard > made => Judgement::Dead,
            Purged { soft, .. } if soft > made => Judgement::Stale { since: soft },
            _ => Judgement::Fresh,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hard(number: u64) -> Purged {
        Purged { hard: number, soft: 0 }
    }

    fn soft(number: u64) -> Purged {
        Purged { hard: 0, soft: number }
    }

    fn table(rows: &[(&'static str, Purged)]) -> Vec<(Bytes, Purged)> {
        rows.iter()
            .map(|(prefix, purged)| (Bytes::from_static(prefix.as_bytes()), *purged))
            .collect()
    }

    fn judge(numbers: &Numbers, key: &str, tags: &[&'static str], made: u64) -> Judgement {
        let tags: Vec<Bytes> = tags.iter().map(|tag| Bytes::from_static(tag.as_bytes())).collect();
        let (known, _) = numbers.look_up(tags.iter());
        numbers.judge(key.as_bytes(), tags.iter(), &known, made, 0)
    }

    #[test]
    fn a_purge_kills_what_was_made_before_it() {
        let numbers = Numbers::default();
        numbers.take_table(9, table(&[("", hard(3)), ("shop:", hard(7)), ("shop:old", soft(9))]));
        numbers.learn_tag(&Bytes::from_static(b"menu"), hard(8), || false);
        for (key, tags, made, judgement) in [
            ("a", &[][..], 2, Judgement::Dead),
            ("a", &[], 3, Judgement::Fresh),
            ("shop:a", &[], 6, Judgement::Dead),
            ("shop:a", &[], 7, Judgement::Fresh),
            ("shop:old", &[], 8, Judgement::Stale { since: 9 }),
            ("shop:old", &[], 9, Judgement::Fresh),
            ("sho", &[], 3, Judgement::Fresh),
            ("a", &["menu"], 7, Judgement::Dead),
            ("a", &["menu"], 8, Judgement::Fresh),
            ("a", &["menu", "unknown"], 99, Judgement::Unproven),
        ] {
            assert_eq!(judge(&numbers, key, tags, made), judgement, "{key} {tags:?} {made}");
        }
        assert_eq!((numbers.learned(), numbers.complete_up_to()), (9, 9));
        let incomplete = numbers.judge(b"a", [].iter(), &HashMap::new(), 99, 10);
        assert_eq!(incomplete, Judgement::Unproven, "a purge that the table does not have");
        numbers.forget();
        assert_eq!((numbers.learned(), numbers.complete_up_to()), (9, 0));
    }

    #[test]
    fn a_purge_of_all_items_is_no_news_to_the_one_that_has_made_it() {
        let numbers = Numbers::default();
        numbers.begin_at(7);
        assert_eq!(judge(&numbers, "a", &[], 6), Judgement::Dead);
        assert_eq!(judge(&numbers, "a", &[], 7), Judgement::Fresh);
        assert!(numbers.take_table(7, table(&[("", hard(7))])).is_empty());
        assert_eq!(numbers.take_table(8, table(&[("", hard(8))])), [Bytes::new()]);
    }

    #[test]
    fn a_table_names_the_prefixes_that_are_new() {
        let numbers = Numbers::default();
        let first = numbers.take_table(5, table(&[("", hard(3)), ("a", hard(5))]));
        assert_eq!(first, [""], "all items, so nothing else needs to be said");
        let second = numbers.take_table(8, table(&[("", hard(3)), ("a", hard(5)), ("b", soft(8))]));
        assert_eq!(second, ["b"]);
        let late = numbers.take_table(7, table(&[("", hard(3))]));
        assert!(late.is_empty() && numbers.complete_up_to() == 8, "an older table changes nothing");
    }

    #[test]
    fn tags_are_known_until_they_are_forgotten() {
        let numbers = Numbers::default();
        let tags = [Bytes::from_static(b"a"), Bytes::from_static(b"b"), Bytes::from_static(b"a")];
        assert_eq!(numbers.look_up(tags.iter()).1, ["a", "b"]);
        numbers.learn_tag(&tags[0], hard(1), || true);
        assert_eq!(numbers.look_up(tags.iter()).1, ["a", "b"], "it has changed meanwhile");
        numbers.learn_tag(&tags[0], hard(1), || false);
        let (known, unknown) = numbers.look_up(tags.iter());
        assert_eq!((known.get(&tags[0]), unknown), (Some(&hard(1)), vec![tags[1].clone()]));
        numbers.forget_tag(b"a");
        assert_eq!(numbers.look_up(tags.iter()).1, ["a", "b"]);
        assert_eq!(numbers.tags.lock().bytes, 0);
    }

    #[test]
    fn the_table_of_tags_is_bounded() {
        let numbers = Numbers::default();
        for number in 0..200_000u32 {
            numbers.learn_tag(&Bytes::from(format!("{number:0100}")), hard(1), || false);
        }
        let tags = numbers.tags.lock();
        assert!(tags.bytes <= TAG_NAMES_BYTES + 200, "{}", tags.bytes);
        assert!(!tags.purged.is_empty());
    }
}
