//! The names of keys in the engine.
//!
//! All of them have the key prefix of the configuration, so several Kirins with different prefixes
//! can share an engine. With the prefix `kirin:`, the names are:
//!
//! ```text
//! {kirin:}n      the number: the last numbers of purges
//! {kirin:}p      a hash: the purged prefixes and their numbers
//! kirin:t:TAG    the numbers of a tag
//! kirin:i:KEY    an item
//! kirin:l:KEY    the lease for making an item
//! kirin:r:NAME   a record
//! {kirin:}m      the machines
//! kirin:c:{LIMIT}KEY   what all machines have counted of a key of a limit
//! ```
//!
//! The braces are a hash tag of Redis Cluster: they put the number and the prefixes into one slot,
//! so one script can change both. Items and tags are spread over the cluster (`slots.rs`).

/// The key prefix that is used if the configuration has none.
pub const DEFAULT_KEY_PREFIX: &str = "kirin:";

/// The longest key prefix in bytes.
pub const KEY_PREFIX_LIMIT_BYTES: usize = 64;

const TAG: &[u8] = b"t:";
const ITEM: &[u8] = b"i:";
const LEASE: &[u8] = b"l:";
const RECORD: &[u8] = b"r:";
const COUNT: &[u8] = b"c:";

/// The names of the keys with one key prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    prefix: Box<[u8]>,
    number: Box<[u8]>,
    purges: Box<[u8]>,
    machines: Box<[u8]>,
}

/// The meaning of a name in the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name<'a> {
    /// The number.
    Number,
    /// The hash of the purged prefixes.
    Purges,
    /// The numbers of this tag.
    Tag(&'a [u8]),
    /// The item or tombstone with this key. The key is the full name in the store.
    Item(&'a [u8]),
    /// The record with this name.
    Record(&'a [u8]),
}

/// A text that cannot be a key prefix.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyPrefixError {
    /// The length in bytes is not allowed.
    #[error("the key prefix has {0} bytes: allowed is 1 to {KEY_PREFIX_LIMIT_BYTES}")]
    Length(usize),
    /// A brace would end or begin the hash tag of a cluster.
    #[error("the key prefix `{0}` has a brace: allowed is any text without `{{` and `}}`")]
    Brace(String),
}

impl Default for Names {
    /// Returns the names with [`DEFAULT_KEY_PREFIX`].
    fn default() -> Self {
        Self::with_prefix(DEFAULT_KEY_PREFIX)
    }
}

impl Names {
    /// Creates the names with the key prefix `prefix`, which has 1 to [`KEY_PREFIX_LIMIT_BYTES`]
    /// bytes and no braces.
    ///
    /// The prefix of one Kirin should not begin with that of another on the same engine: `a` and
    /// `ai:` share names.
    pub fn new(prefix: &str) -> Result<Self, KeyPrefixError> {
        if prefix.is_empty() || prefix.len() > KEY_PREFIX_LIMIT_BYTES {
            return Err(KeyPrefixError::Length(prefix.len()));
        }
        if prefix.contains(['{', '}']) {
            return Err(KeyPrefixError::Brace(prefix.into()));
        }
        Ok(Self::with_prefix(prefix))
    }

    fn with_prefix(prefix: &str) -> Self {
        let in_one_slot = |end: &str| format!("{{{prefix}}}{end}").into_bytes().into();
        Self {
            prefix: prefix.as_bytes().into(),
            number: in_one_slot("n"),
            purges: in_one_slot("p"),
            machines: in_one_slot("m"),
        }
    }

    /// Returns the name of the number.
    pub fn number(&self) -> &[u8] {
        &self.number
    }

    /// Returns the name of the hash of purged prefixes.
    pub fn purges(&self) -> &[u8] {
        &self.purges
    }

    /// Returns the name of the tag `tag`.
    pub fn tag(&self, tag: &[u8]) -> Vec<u8> {
        [&*self.prefix, TAG, tag].concat()
    }

    /// Returns the name of the item `key`, which is the full name in the store.
    pub fn item(&self, key: &[u8]) -> Vec<u8> {
        [&*self.prefix, ITEM, key].concat()
    }

    /// Returns the name of the lease for making the item `key`.
    pub fn lease(&self, key: &[u8]) -> Vec<u8> {
        [&*self.prefix, LEASE, key].concat()
    }

    /// Returns the name of the record `name`.
    pub fn record(&self, name: &[u8]) -> Vec<u8> {
        [&*self.prefix, RECORD, name].concat()
    }

    /// Returns the name of the set of machines.
    pub fn machines(&self) -> &[u8] {
        &self.machines
    }

    /// Returns the name of what was counted for `key` of the limit `limit`. Those of one limit are
    /// in one slot of a cluster. Neither may have braces.
    pub fn count(&self, limit: &[u8], key: &[u8]) -> Vec<u8> {
        [&*self.prefix, COUNT, b"{", limit, b"}", key].concat()
    }

    /// Parses a name that the engine has sent. Returns `None` if it has another key prefix, if no
    /// Kirin makes such names, or if nobody waits for its changes.
    pub fn parse<'a>(&self, name: &'a [u8]) -> Option<Name<'a>> {
        if let Some(rest) = name.strip_prefix(&*self.prefix) {
            let item = rest.strip_prefix(ITEM).map(Name::Item);
            let tag = || rest.strip_prefix(TAG).map(Name::Tag);
            return item.or_else(tag).or_else(|| rest.strip_prefix(RECORD).map(Name::Record));
        }
        if name == self.number() {
            Some(Name::Number)
        } else if name == self.purges() {
            Some(Name::Purges)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_have_the_key_prefix() {
        let names = Names::new(DEFAULT_KEY_PREFIX).expect("the default");
        assert_eq!(names.number(), b"{kirin:}n");
        assert_eq!(names.purges(), b"{kirin:}p");
        assert_eq!(names.tag(b"news"), b"kirin:t:news");
        assert_eq!(names.item(b"/a\0\xff"), b"kirin:i:/a\0\xff");
    }

    #[test]
    fn only_names_of_this_prefix_are_parsed() {
        let names = Names::new("k").expect("a prefix");
        for (name, meaning) in [
            (&b"{k}n"[..], Some(Name::Number)),
            (b"{k}p", Some(Name::Purges)),
            (b"kt:", Some(Name::Tag(b""))),
            (b"kt:i:a", Some(Name::Tag(b"i:a"))),
            (b"ki:t:a", Some(Name::Item(b"t:a"))),
            (b"", None),
            (b"k", None),
            (b"kn", None),
            (b"ki", None),
            (b"kx:a", None),
            (b"kl:a", None),
            (b"kr:a", Some(Name::Record(b"a"))),
            (b"kc:{a}b", None),
            (b"{k}m", None),
            (b"k}n", None),
            (b"{k}", None),
            (b"{k}nn", None),
            (b"{k}i:a", None),
            (b"{kk}n", None),
            (b"other:i:a", None),
        ] {
            assert_eq!(names.parse(name), meaning, "{:?}", String::from_utf8_lossy(name));
        }
    }

    #[test]
    fn a_key_prefix_is_short_and_has_no_brace() {
        for (prefix, reason) in [
            ("".into(), "0 bytes"),
            ("x".repeat(65), "1 to 64"),
            ("\u{e4}".repeat(33), "66 bytes"),
            ("a{b".into(), "`a{b`"),
            ("a}".into(), "without `{` and `}`"),
        ] {
            let error = Names::new(&prefix).expect_err(&prefix).to_string();
            assert!(error.contains(reason), "{prefix}: {error}");
        }
        assert!(Names::new(&"x".repeat(64)).is_ok());
    }

    proptest! {
        #[test]
        fn a_name_is_parsed_as_it_was_made(prefix in "[^{}]{1,16}", text in any::<Vec<u8>>()) {
            let names = Names::new(&prefix).expect("a prefix");
            prop_assert_eq!(names.parse(names.number()), Some(Name::Number));
            prop_assert_eq!(names.parse(names.purges()), Some(Name::Purges));
            let (tag, item) = (names.tag(&text), names.item(&text));
            let record = names.record(&text);
            prop_assert_eq!(names.parse(&record), Some(Name::Record(&text)));
            prop_assert_eq!(names.parse(&tag), Some(Name::Tag(&text)));
            prop_assert_eq!(names.parse(&item), Some(Name::Item(&text)));
        }
    }
}
