//! Namespaces: parts of the store that do not know each other's items.
//!
//! A namespace with the name `shop` has all keys and tags that begin with `shop:`. The root has all
//! others. A program that works in a namespace writes names without this prefix. So a name can
//! never lead out of its namespace. The clients of memcached call such a prefix a namespace, too.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;

/// The byte between the name of a namespace and the names in it.
const SEPARATOR: char = ':';

/// A namespace. A clone counts in an atomic, so each thread should make its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Namespace(NamespaceKind);

#[derive(Clone, Debug, PartialEq, Eq)]
enum NamespaceKind {
    /// All names that are outside of these namespaces.
    Root(Option<Arc<NamespaceNames>>),
    /// The prefix: the name and the separator.
    Named(Arc<str>),
}

/// The names of all namespaces but the root. The root must not reach into them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamespaceNames {
    names: BTreeSet<String>,
    /// The ends of names that are made when they are needed, such as `.example.org`.
    suffixes: Vec<String>,
}

impl Default for Namespace {
    /// Returns the root of a store that has no other namespace.
    fn default() -> Self {
        Self(NamespaceKind::Root(None))
    }
}

impl Namespace {
    /// Returns the root, which excludes the namespaces with these names.
    pub fn root(others: &NamespaceNames) -> Self {
        Self(NamespaceKind::Root((!others.is_empty()).then(|| Arc::new(others.clone()))))
    }

    /// Returns the namespace `name`, which must have no `:`.
    pub fn named(name: &str) -> Self {
        let mut prefix = String::with_capacity(name.len() + 1);
        prefix.push_str(name);
        prefix.push(SEPARATOR);
        Self(NamespaceKind::Named(prefix.into()))
    }

    /// Returns the name. It is empty for the root.
    pub fn name(&self) -> &str {
        self.prefix().trim_end_matches(SEPARATOR)
    }

    /// Returns the start of all names in this namespace. It is empty for the root.
    pub fn prefix(&self) -> &str {
        match &self.0 {
            NamespaceKind::Root(_) => "",
            NamespaceKind::Named(prefix) => prefix,
        }
    }

    /// Returns the key or tag that the store has for `name`. Returns `None` if that would be a name
    /// of another namespace.
    pub fn full_name<'a>(&self, name: &'a [u8]) -> Option<Cow<'a, [u8]>> {
        match &self.0 {
            NamespaceKind::Root(Some(others)) if others.has(name) => None,
            NamespaceKind::Root(_) => Some(Cow::Borrowed(name)),
            NamespaceKind::Named(prefix) => Some(Cow::Owned([prefix.as_bytes(), name].concat())),
        }
    }

    /// Returns the prefix that the store has for `prefix`. Returns `None` if names of other
    /// namespaces may start with it.
    pub fn full_prefix<'a>(&self, prefix: &'a [u8]) -> Option<Cow<'a, [u8]>> {
        match &self.0 {
            NamespaceKind::Root(Some(others)) if others.may_begin_with(prefix) => None,
            _ => self.full_name(prefix),
        }
    }
}

impl NamespaceNames {
    /// Collects `names`, and the ends of names that are made when they are needed. No name has a
    /// `:`.
    pub fn new(
        names: impl IntoIterator<Item = String>,
        suffixes: impl IntoIterator<Item = String>,
    ) -> Self {
        Self { names: names.into_iter().collect(), suffixes: suffixes.into_iter().collect() }
    }

    /// Returns whether there are no namespaces but the root.
    fn is_empty(&self) -> bool {
        self.names.is_empty() && self.suffixes.is_empty()
    }

    /// Returns whether the key or tag `name` is in one of these namespaces.
    fn has(&self, name: &[u8]) -> bool {
        // A page has its path as its key. This is the common case.
        if name.first() == Some(&b'/') {
            return false;
        }
        let Some(end) = name.iter().position(|byte| *byte == SEPARATOR as u8) else { return false };
        let Ok(namespace) = std::str::from_utf8(&name[..end]) else { return false };
        self.names.contains(namespace)
            || self.suffixes.iter().any(|suffix| namespace.ends_with(suffix.as_str()))
    }

    /// Returns whether a name in one of these namespaces may start with `prefix`.
    fn may_begin_with(&self, prefix: &[u8]) -> bool {
        if prefix.contains(&(SEPARATOR as u8)) {
            return self.has(prefix);
        }
        let Ok(prefix) = std::str::from_utf8(prefix) else { return false };
        let is_of_host = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
        let from = (Bound::Included(prefix), Bound::Unbounded);
        let next = self.names.range::<str, _>(from).next();
        next.is_some_and(|name| name.starts_with(prefix))
            || (!self.suffixes.is_empty() && prefix.bytes().all(is_of_host))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root() -> Namespace {
        let names = ["shop".to_owned(), "example.org".to_owned()];
        Namespace::root(&NamespaceNames::new(names, [".example.net".to_owned()]))
    }

    #[test]
    fn a_named_namespace_puts_its_name_before_everything() {
        let namespace = Namespace::named("shop");
        assert_eq!((namespace.name(), namespace.prefix()), ("shop", "shop:"));
        for name in ["/", "sidebar", "example.org:/", ""] {
            let full = format!("shop:{name}");
            assert_eq!(namespace.full_name(name.as_bytes()).unwrap(), full.as_bytes());
            assert_eq!(namespace.full_prefix(name.as_bytes()).unwrap(), full.as_bytes());
        }
    }

    #[test]
    fn the_root_reaches_into_no_other_namespace() {
        let alone = Namespace::default();
        for (name, is_own) in [
            ("/", true),
            ("/shop:x", true),
            ("sidebar", true),
            ("shop", true),
            ("shops:x", true),
            ("user:7", true),
            ("shop:", false),
            ("shop:/", false),
            ("example.org:sidebar", false),
            ("a.example.net:/", false),
            ("a.b.example.net:/", false),
            ("example.net:/", true),
        ] {
            assert_eq!(root().full_name(name.as_bytes()).is_some(), is_own, "{name}");
            assert_eq!(alone.full_name(name.as_bytes()).unwrap(), name.as_bytes());
        }
    }

    #[test]
    fn a_root_with_namespaces_differs_from_a_root_without() {
        assert_ne!(root(), Namespace::default());
        assert_eq!(root(), root());
        assert_eq!(Namespace::root(&NamespaceNames::default()), Namespace::default());
        assert_ne!(Namespace::named("shop"), root());
        assert_eq!(Namespace::named("shop"), Namespace::named("shop"));
    }

    #[test]
    fn a_prefix_of_the_root_covers_no_other_namespace() {
        for (prefix, is_own) in [
            ("/", true),
            ("/recent/", true),
            ("memo/", true),
            ("user:", true),
            ("", false),
            ("sh", false),
            ("shop", false),
            ("shop:/a", false),
            ("a.example.net:", false),
            // A host below `.example.net` may begin with it.
            ("memo", false),
        ] {
            assert_eq!(root().full_prefix(prefix.as_bytes()).is_some(), is_own, "{prefix}");
        }
        let others = NamespaceNames::new(["shop".to_owned()], []);
        assert!(Namespace::root(&others).full_prefix(b"memo").is_some());
        assert_eq!(Namespace::default().full_prefix(b"").unwrap(), &b""[..]);
    }
}
