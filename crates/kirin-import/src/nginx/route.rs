//! A route while it is put together.

use toml::{Table, Value};

use super::units::{text, texts};
use crate::section::Section;

/// A route.
#[derive(Debug, Clone, PartialEq)]
pub struct Route {
    /// Its keys.
    pub section: Section,
    /// Whether the route refuses everybody because Kirin does not have a protection.
    pub closed: bool,
    /// Which location has the program that answers.
    pub program: Program,
}

/// Which location has the program that answers in a route.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Program {
    /// That of the route.
    #[default]
    OfRoute,
    /// That with this name, which begins with `@`.
    Named(String),
    /// That with this path.
    ByPath(String),
    /// That of PHP scripts.
    Php,
}

/// The most entries of a table, such as `headers`.
pub const MAX_ENTRIES: usize = 200;

/// The keys that say what a route answers, and from where. A route that is closed has none of them.
const OF_ANSWERS: [&str; 27] = [
    "try",
    "fallback",
    "redirect",
    "redirect_status",
    "redirects",
    "rewrite",
    "allow",
    "maintenance",
    "basic_auth",
    "basic_auth_realm",
    "auth_request",
    "rate_limit",
    "in_flight_limit",
    "body_limit",
    "request_buffering",
    "index",
    "listing",
    "follow_links",
    "precompressed",
    "immutable",
    "mime_types",
    "charset",
    "request_headers",
    "compress",
    "cache",
    "cgi",
    "ssi",
];

impl Route {
    /// Returns a route for a path.
    pub fn new(path: &str) -> Self {
        let mut section = Section::new("[[site.route]]");
        section.set("path", text(path));
        Self { section, closed: false, program: Program::OfRoute }
    }

    /// Returns the value of `path`.
    pub fn path(&self) -> &str {
        self.section.get("path").and_then(Value::as_str).unwrap_or_default()
    }

    /// Returns the conditions of `match`.
    pub fn conditions(&self) -> Table {
        self.section.get("match").and_then(Value::as_table).cloned().unwrap_or_default()
    }

    /// Returns whether two of these are the same for Kirin.
    pub fn identity(&self) -> (String, String) {
        (self.path().to_owned(), self.conditions().to_string())
    }

    /// Returns the places.
    pub fn places(&self) -> Vec<String> {
        let list = self.section.get("try").and_then(Value::as_array);
        let list = list.into_iter().flatten().filter_map(Value::as_str);
        list.map(str::to_owned).collect()
    }

    /// Sets the places.
    pub fn set_places(&mut self, places: &[String]) {
        self.section.set("try", texts(places));
    }

    /// Returns whether one of the places is of this kind, such as `files:`.
    pub fn has_place(&self, kind: &str) -> bool {
        self.places().iter().any(|place| place.starts_with(kind))
    }

    /// Returns whether a program answers: an upstream or a CGI program.
    pub fn runs_code(&self) -> bool {
        self.has_place("proxy:") || self.has_place("cgi:") || self.has_place("lua:")
    }

    /// Returns whether it refuses every client.
    pub fn refuses_all(&self) -> bool {
        self.section.get("deny").is_some() && self.section.get("allow").is_none()
    }

    /// Returns whether it shows something to somebody.
    pub fn serves(&self) -> bool {
        !self.refuses_all() && !self.redirects()
    }

    /// Returns whether it is a redirect.
    pub fn redirects(&self) -> bool {
        self.section.get("redirect").is_some() || self.section.get("redirects").is_some()
    }

    /// Adds an entry to a table, unless the table has the name already, or very many others.
    pub fn add_entry(&mut self, key: &str, name: &str, value: impl Into<Value>) {
        self.section.change_table(key, |table| {
            let is_known = || table.keys().any(|other| other.eq_ignore_ascii_case(name));
            if table.len() < MAX_ENTRIES && !is_known() {
                table.insert(name.to_owned(), value.into());
            }
        });
    }

    /// Adds a value to a list.
    pub fn push(&mut self, key: &str, value: impl Into<Value>) {
        let mut list = self.section.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
        list.push(value.into());
        self.section.set(key, list);
    }

    /// Removes a key.
    pub fn remove(&mut self, key: &str) {
        self.section.keys.retain(|(name, _)| name != key);
    }

    /// Removes the keys that say what the route answers.
    pub fn remove_answer(&mut self) {
        self.section.keys.retain(|(name, _)| !OF_ANSWERS.contains(&name.as_str()));
    }

    /// Makes the route refuse everybody. A comment says why.
    pub fn close(&mut self, why: &str) {
        self.remove_answer();
        self.section.set("deny", 403);
        self.section.comment(format!("CLOSED: {why}"));
        self.closed = true;
    }

    /// Adds conditions to those of the route. Returns whether both can hold.
    pub fn add_conditions(&mut self, conditions: &Table) -> bool {
        if conditions.is_empty() {
            return true;
        }
        let mut all = self.conditions();
        for (key, value) in conditions {
            match (all.get_mut(key), value) {
                (None, value) => {
                    all.insert(key.clone(), value.clone());
                }
                (Some(Value::Table(old)), Value::Table(new)) => {
                    for (name, value) in new {
                        if old.get(name).is_some_and(|other| other != value) {
                            return false;
                        }
                        old.insert(name.clone(), value.clone());
                    }
                }
                (Some(old), new) if old == new => {}
                _ => return false,
            }
        }
        self.section.set("match", all);
        true
    }
}
