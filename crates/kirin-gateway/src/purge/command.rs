//! The names of items that are purged: keys, prefixes of keys, tags. They come with `Kirin-Purge`
//! of an application's response, with `PURGE`, by the admin listener or from `kirin purge`.

use std::borrow::Cow;

use kirin_cache::key::{target_prefix, target_tags};
use kirin_http::host::canonical_host;
use kirin_origin::{NearStore, OriginError, StoreOrigin};
use kirin_store::{
    DeleteOutcome, DeleteRequest, Invalidation, Namespace, Now, Store, TAG_LIMIT_BYTES,
};
use serde::{Deserialize, Serialize};

use crate::filters::push::dictionary::{self, Item};
use crate::purge::counters::COUNTERS;

/// The longest key and prefix in bytes, as for memcached.
pub const MAX_KEY_BYTES: usize = 250;

/// The longest tag in bytes, without the name of a site before it.
pub const MAX_TAG_BYTES: usize = 64;

/// The most names that one request purges. Each takes well below a microsecond.
const MAX_NAMES: usize = 1000;

/// The form of `Kirin-Purge`, for the log.
pub const FORM: &str =
    "`tags=\"memo-7 user-3\", keys=\"/ /recent/0\", prefixes=\"/recent/\"`, and `, soft` behind it";

/// Finds the name that the store has for a name in a namespace.
type FullName = for<'a> fn(&Namespace, &'a [u8]) -> Option<Cow<'a, [u8]>>;

/// A purge: the names of items that are removed, or become stale.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Purge {
    /// The keys of items. The key of a page is its request target.
    pub keys: Vec<String>,
    /// The prefixes of keys.
    pub prefixes: Vec<String>,
    /// The tags of items.
    pub tags: Vec<String>,
    /// Whether the items stay and are stale from now on.
    pub soft: bool,
}

/// The numbers of names that were found. It is not known for a prefix.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Purged {
    /// The keys that were there.
    pub keys: usize,
    /// The prefixes, all of them.
    pub prefixes: usize,
    /// The tags that items had or had recently.
    pub tags: usize,
}

impl Purge {
    /// Parses the value of `Kirin-Purge`.
    pub fn parse(value: &[u8]) -> Result<Self, String> {
        let mut purge = Purge::default();
        for (name, item) in dictionary::parse(value).map_err(|error| error.to_string())? {
            let names = match name.as_str() {
                "soft" => {
                    let Item::Boolean(soft) = item else {
                        return Err("`soft` is neither `?0` nor `?1`".into());
                    };
                    purge.soft = soft;
                    continue;
                }
                "keys" => &mut purge.keys,
                "prefixes" => &mut purge.prefixes,
                "tags" => &mut purge.tags,
                _ => return Err(format!("`{name}` is not known")),
            };
            let Item::String(text) = item else { return Err(format!("`{name}` is no string")) };
            names.extend(text.split(' ').filter(|name| !name.is_empty()).map(str::to_owned));
        }
        purge.check()?;
        Ok(purge)
    }

    /// Returns whether the command names nothing.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.prefixes.is_empty() && self.tags.is_empty()
    }

    /// Checks whether every name is valid.
    pub fn check(&self) -> Result<(), String> {
        if self.keys.len() + self.prefixes.len() + self.tags.len() > MAX_NAMES {
            return Err(format!("more than {MAX_NAMES} names"));
        }
        for key in self.keys.iter().chain(&self.prefixes) {
            check_key(key)?;
        }
        self.tags.iter().try_for_each(|tag| check_tag(tag))
    }

    /// Returns the purge with the names that the store has for those of the site `site`, which an
    /// operator has named by its host or its name.
    pub fn of_site(&self, site: &str) -> Result<Self, String> {
        let name = canonical_host(site);
        if name.is_empty() || name.contains([':', '/', ' ']) {
            return Err(format!("`{site}` is not the name of a site, such as example.org"));
        }
        self.within(&Namespace::named(&name))
    }

    /// Returns the purge with the names that the store has for those in `namespace`. An error is a
    /// message for the author of the purge.
    pub fn within(&self, namespace: &Namespace) -> Result<Self, String> {
        let all = |names: &[String], full_name: FullName| {
            names
                .iter()
                .map(|name| {
                    let full = full_name(namespace, name.as_bytes());
                    full.and_then(|full| String::from_utf8(full.into_owned()).ok()).ok_or_else(
                        || format!("`{name}` also names items of another site: their keys and tags begin with its name and `:`"),
                    )
                })
                .collect::<Result<Vec<_>, _>>()
        };
        Ok(Self {
            keys: all(&self.keys, Namespace::full_name)?,
            prefixes: all(&self.prefixes, Namespace::full_prefix)?,
            tags: all(&self.tags, Namespace::full_name)?,
            soft: self.soft,
        })
    }

    /// Removes the items, or marks them as stale. When this returns, every client of this machine
    /// sees the change, and the server behind the store has it, if there is one. A key that is a
    /// target, and a prefix of targets, also name what routes have cached.
    pub async fn apply(&self, near: &NearStore, now: Now) -> Result<Purged, OriginError> {
        let purged = match near.origin() {
            // Each purge is a write that all machines hear of.
            Some(origin) if !self.is_empty() => self.apply_to(origin, now).await?,
            _ => self.apply_here(near.store(), now),
        };
        COUNTERS.count(&purged);
        Ok(purged)
    }

    /// Purges with one write, however many names there are.
    async fn apply_to(&self, origin: &StoreOrigin, now: Now) -> Result<Purged, OriginError> {
        let how = if self.soft { Invalidation::Soft } else { Invalidation::Hard };
        let bytes = |names: &[String]| names.iter().map(|name| name.clone().into_bytes()).collect();
        let (keys, tags): (Vec<Vec<u8>>, Vec<Vec<u8>>) = (bytes(&self.keys), bytes(&self.tags));
        let target_tags: Vec<Vec<u8>> = keys.iter().flat_map(|key| target_tags(key)).collect();
        let prefixes = self.prefixes.iter().flat_map(|prefix| prefixes_of(prefix));
        let prefixes: Vec<Vec<u8>> = prefixes.collect();
        fn slices(names: &[Vec<u8>]) -> Vec<&[u8]> {
            names.iter().map(Vec::as_slice).collect()
        }
        let found = origin
            .purge(
                &kirin_origin::Purge {
                    keys: &slices(&keys),
                    tags: &slices(&tags),
                    other_tags: &slices(&target_tags),
                    prefixes: &slices(&prefixes),
                },
                how,
                now,
            )
            .await?;
        let count = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        Ok(Purged {
            keys: count(found.items),
            prefixes: self.prefixes.len(),
            tags: count(found.tags),
        })
    }

    fn apply_here(&self, store: &Store, now: Now) -> Purged {
        let how = if self.soft { Invalidation::Soft } else { Invalidation::Hard };
        let delete = DeleteRequest { invalidate: self.soft, ..DeleteRequest::default() };
        let is_there = |key: &&String| {
            let mut is_cached = false;
            for tag in target_tags(key.as_bytes()) {
                is_cached |= store.invalidate_tag(&tag, how);
            }
            store.meta_delete(key.as_bytes(), &delete, now) == DeleteOutcome::Deleted || is_cached
        };
        let is_carried = |tag: &&String| store.invalidate_tag(tag.as_bytes(), how);
        let is_taken = |prefix: &&String| {
            let [cached, own] = prefixes_of(prefix);
            store.invalidate_prefix(&cached, how, now);
            store.invalidate_prefix(&own, how, now)
        };
        Purged {
            keys: self.keys.iter().filter(is_there).count(),
            prefixes: self.prefixes.iter().filter(is_taken).count(),
            tags: self.tags.iter().filter(is_carried).count(),
        }
    }
}

/// Returns the prefix of what routes have cached for a prefix of targets, and that of items.
fn prefixes_of(prefix: &str) -> [Vec<u8>; 2] {
    let mut prefixes = [target_prefix(prefix.as_bytes()), prefix.as_bytes().to_vec()];
    // The store takes no longer prefix. A shorter one purges no less.
    prefixes.iter_mut().for_each(|prefix| prefix.truncate(TAG_LIMIT_BYTES));
    prefixes
}

/// Checks a key or a prefix of keys, as a memcached client could have written it.
pub fn check_key(key: &str) -> Result<(), String> {
    check_name(key, MAX_KEY_BYTES, "key or prefix", false)
}

/// Checks a tag, as a memcached client could have written it in a list.
pub fn check_tag(tag: &str) -> Result<(), String> {
    check_name(tag, MAX_TAG_BYTES, "tag", true)
}

fn check_name(name: &str, most: usize, what: &str, in_list: bool) -> Result<(), String> {
    if name.is_empty() || name.len() > most {
        return Err(format!("a {what} has 1 to {most} bytes"));
    }
    if name.bytes().any(|byte| byte <= b' ' || byte == 0x7f || in_list && byte == b',') {
        let comma = if in_list { ", comma" } else { "" };
        return Err(format!("a {what} has no space{comma} and no control character"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use kirin_store::{NewItem, StoreConfig};

    #[test]
    fn names_are_separated_by_spaces() {
        let purge = Purge::parse(br#"tags="a b", keys="/  /x?y=1", prefixes="/recent/""#).unwrap();
        assert_eq!(purge.tags, ["a", "b"]);
        assert_eq!(purge.keys, ["/", "/x?y=1"]);
        assert_eq!(purge.prefixes, ["/recent/"]);
        assert_eq!(Purge::parse(b""), Ok(Purge::default()));
    }

    #[test]
    fn a_purge_is_soft_if_the_field_has_soft() {
        for (value, soft) in [
            ("tags=\"a\", soft", true),
            ("soft=?1", true),
            ("soft=?0", false),
            ("keys=\"/\"", false),
        ] {
            assert_eq!(Purge::parse(value.as_bytes()).map(|purge| purge.soft), Ok(soft), "{value}");
        }
    }

    #[test]
    fn invalid_names_are_refused() {
        let long = format!("keys=\"{}\"", "x".repeat(251));
        let many = format!("tags=\"{}\"", "x ".repeat(1001));
        for (value, message) in [
            ("tag=\"a\"", "`tag` is not known"),
            ("tags=7", "`tags` is no string"),
            ("tags", "`tags` is no string"),
            ("soft=1", "`soft` is neither"),
            ("tags=a", "double quotes"),
            ("tags=\"a,b\"", "no space, comma"),
            (long.as_str(), "1 to 250 bytes"),
            (many.as_str(), "more than 1000 names"),
        ] {
            let error = Purge::parse(value.as_bytes()).unwrap_err();
            assert!(error.contains(message), "{value}: {error}");
        }
    }

    #[test]
    fn a_purge_removes_the_named_items_only() {
        let now = Now::from_unix_seconds(1_700_000_000);
        let store = Store::new(StoreConfig::default());
        for (key, tag) in [("/a", "x"), ("/b", "y"), ("/c/1", "x"), ("/d", "z"), ("/e", "x")] {
            store.set(key.as_bytes(), NewItem::new(b"text/plain\r\n").tags(&[tag.as_bytes()]), now);
        }
        let purge = Purge::parse(br#"tags="y never", keys="/a /gone", prefixes="/c/""#).unwrap();
        assert_eq!(purge.apply_here(&store, now), Purged { keys: 1, prefixes: 1, tags: 1 });
        let left: Vec<_> = ["/a", "/b", "/c/1", "/d", "/e"]
            .into_iter()
            .filter(|key| store.get(key.as_bytes(), now).is_some())
            .collect();
        assert_eq!(left, ["/d", "/e"]);
    }

    #[test]
    fn a_soft_purge_makes_the_named_items_stale() {
        let now = Now::from_unix_seconds(1_700_000_000);
        let store = Store::new(StoreConfig::default());
        let keys = ["/a", "/b", "/c/1", "/d"];
        for (key, tag) in keys.into_iter().zip(["x", "y", "x", "z"]) {
            store.set(key.as_bytes(), NewItem::new(b"text/plain\r\n").tags(&[tag.as_bytes()]), now);
        }
        let purge = Purge::parse(br#"tags="y", keys="/a /gone", prefixes="/c/", soft"#).unwrap();
        assert_eq!(purge.apply_here(&store, now), Purged { keys: 1, prefixes: 1, tags: 1 });
        let stale = keys.map(|key| store.get(key.as_bytes(), now).map(|item| item.is_stale()));
        assert_eq!(stale, [Some(true), Some(true), Some(true), Some(false)]);
    }
}
