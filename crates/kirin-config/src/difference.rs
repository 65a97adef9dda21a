//! What differs between two configurations, for `kirin reload`.
//!
//! The documents are compared as they are written, without the defaults and before sites pass their
//! keys on to routes. Formatting, comments, quotes, the order of keys and the files of keys make no
//! difference. The order of listeners, apps, upstreams and sites makes none either. The order of
//! routes and of the servers of an upstream does. The values of variables are compared, and shown
//! as they are written.

use std::fmt;

use crate::comparison::compare;
use crate::joined_document::JoinedDocument;
use crate::reload_class::ReloadClass;
use crate::source::ConfigSource;

/// One change of a configuration. It shows one line, such as
/// `[[listener]] 127.0.0.1:8080: keep_alive "75s" → "60s"`.
///
/// All texts of it are on one line, and cut if they are long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The section, such as `listener`, `listener.tls` or `route`. Empty for the top level.
    pub section: String,
    /// The site, if the change is in one of its routes.
    pub site: Option<String>,
    /// The name of the listener, app, upstream, route or site.
    pub name: Option<String>,
    /// The key as it is written in the item, such as `tls.certificates`. A server of an upstream is
    /// `server ADDRESS`. `None` if a complete item or table is added or removed, or if routes have
    /// another order.
    pub key: Option<String>,
    /// What happened.
    pub kind: ChangeKind,
    /// How the change takes effect.
    pub class: ReloadClass,
}

/// What happened to a key or an item. Values are TOML. A value is `None` if it may hold a secret,
/// or if the change is one of a complete item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// It is only in the new configuration.
    Added {
        /// The new value of the key.
        value: Option<String>,
    },
    /// It is only in the old configuration.
    Removed {
        /// The old value of the key.
        value: Option<String>,
    },
    /// It has another value.
    Changed {
        /// The old and the new value.
        values: Option<OldAndNew>,
    },
    /// The same routes or servers are in another order.
    Reordered,
}

/// The two values of a changed key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OldAndNew {
    /// The value in the old configuration.
    pub old: String,
    /// The value in the new configuration.
    pub new: String,
}

/// Returns what differs between two configurations that [`read`](crate::read) has accepted.
/// Relative paths are compared as they are written, so both should have the same directory.
///
/// The changes are in the order of the new file. A removed item comes after the other items of its
/// kind, and a removed key after the other keys of its table.
pub fn difference(old: &ConfigSource, new: &ConfigSource) -> Vec<Change> {
    let documents = [old, new].map(|source| JoinedDocument::parse(source).document);
    let [old_document, new_document] = &documents;
    compare(old_document.root(), new_document.root(), [old, new])
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        if let Some(site) = &self.site {
            write!(f, "[[site]] {site}")?;
            separator = ", ";
        }
        let root = self.section.split('.').next().unwrap_or_default();
        if let Some(name) = &self.name {
            write!(f, "{separator}[[{root}]] {name}")?;
            separator = ": ";
        } else if self.kind == ChangeKind::Reordered {
            separator = if separator.is_empty() { "" } else { ": " };
        } else if !root.is_empty() {
            write!(f, "[{root}]")?;
            separator = ": ";
        }
        f.write_str(separator)?;
        match (&self.key, &self.kind) {
            (Some(key), ChangeKind::Reordered) => return write!(f, "{key} are in another order"),
            (None, ChangeKind::Reordered) => return f.write_str("routes are in another order"),
            (Some(key), _) => write!(f, "{key} ")?,
            (None, _) => {}
        }
        self.kind.fmt(f)
    }
}

impl fmt::Display for ChangeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Added { value: Some(value) } => write!(f, "added {value}"),
            Self::Added { value: None } => f.write_str("added"),
            Self::Removed { value: Some(value) } => write!(f, "removed, was {value}"),
            Self::Removed { value: None } => f.write_str("removed"),
            Self::Changed { values: Some(OldAndNew { old, new }) } => write!(f, "{old} → {new}"),
            Self::Changed { values: None } => f.write_str("changed"),
            Self::Reordered => f.write_str("in another order"),
        }
    }
}

#[cfg(test)]
#[path = "difference_tests.rs"]
mod tests;
