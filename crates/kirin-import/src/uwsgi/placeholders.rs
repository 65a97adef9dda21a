//! Placeholders: `%(name)`, `%d` and others.

use std::collections::{HashMap, HashSet};

/// The longest value with its placeholders replaced.
const LONGEST_VALUE: usize = 64 * 1024;

/// What placeholders stand for.
#[derive(Debug, Clone)]
pub(crate) struct Placeholders {
    /// The path of the file in which the options stand.
    path: String,
    /// The options of before, by their names.
    options: HashMap<String, String>,
    /// The names of the options that stand in the values of others.
    used: HashSet<String>,
}

impl Placeholders {
    /// Returns the placeholders of a file.
    pub(crate) fn new(path: &str) -> Self {
        Self { path: path.to_owned(), options: HashMap::new(), used: HashSet::new() }
    }

    /// Sets the path of the file that is read. Returns that of before.
    pub(crate) fn enter(&mut self, path: &str) -> String {
        std::mem::replace(&mut self.path, path.to_owned())
    }

    /// Remembers an option.
    pub(crate) fn set(&mut self, key: &str, value: &str) {
        self.options.insert(key.to_owned(), value.to_owned());
    }

    /// Returns whether the value of an option stands in that of another one.
    pub(crate) fn is_used(&self, key: &str) -> bool {
        self.used.contains(key)
    }

    /// Returns a value with its placeholders replaced. Those that are not known stay.
    ///
    /// # Errors
    /// Returns what is wrong if the value becomes too long.
    pub(crate) fn replaced(&mut self, value: &str) -> Result<String, String> {
        let mut text = String::new();
        let mut rest = value;
        while let Some(start) = rest.find('%') {
            let (before, behind) = rest.split_at(start);
            text.push_str(before);
            let (found, length) = self.first(behind);
            match found {
                Some(found) => text.push_str(&found),
                None => text.push_str(behind.get(..length).unwrap_or_default()),
            }
            if text.len() > LONGEST_VALUE {
                return Err(format!("the value has more than {LONGEST_VALUE} bytes"));
            }
            rest = behind.get(length..).unwrap_or_default();
        }
        text.push_str(rest);
        Ok(text)
    }

    /// Returns what the placeholder at the beginning of a text stands for, and its length.
    fn first(&mut self, text: &str) -> (Option<String>, usize) {
        if let Some(name) = text.strip_prefix("%(") {
            let Some(end) = name.find(')') else { return (None, text.len()) };
            let name = name.get(..end).unwrap_or_default();
            let value = self.options.get(name).cloned();
            if value.is_some() {
                self.used.insert(name.to_owned());
            }
            return (value, end + 3);
        }
        let Some(letter) = text.chars().nth(1) else { return (None, text.len()) };
        (self.magic(letter), 1 + letter.len_utf8())
    }

    /// Returns the value of `%d`, `%n` and other letters about the file.
    fn magic(&self, letter: char) -> Option<String> {
        let (directory, name) = match self.path.rfind('/') {
            Some(slash) => self.path.split_at(slash + 1),
            None => ("./", self.path.as_str()),
        };
        let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
        let found = match letter {
            'p' | 'P' | 'o' | 'O' => self.path.as_str(),
            'd' | 'D' => directory,
            's' | 'S' => name,
            'n' | 'N' => stem,
            'e' | 'E' => name.rsplit_once('.').map_or("", |(_, extension)| extension),
            'c' | 'C' => directory.trim_end_matches('/').rsplit('/').next().unwrap_or_default(),
            _ => return None,
        };
        Some(found.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_those_of_uwsgi() {
        let mut placeholders = Placeholders::new("/etc/uwsgi/shop.ini");
        placeholders.set("base", "/srv");
        for (value, expected) in [
            ("%(base)/%n", "/srv/shop"),
            ("%d|%s|%c|%e|%p", "/etc/uwsgi/|shop.ini|uwsgi|ini|/etc/uwsgi/shop.ini"),
            ("%(none) %k 100%", "%(none) %k 100%"),
            ("%(open", "%(open"),
        ] {
            assert_eq!(placeholders.replaced(value).as_deref(), Ok(expected), "{value}");
        }
    }

    #[test]
    fn a_value_does_not_grow_without_a_limit() {
        let mut placeholders = Placeholders::new("f");
        let mut value = "a".repeat(1000);
        let grown = (0..20).try_for_each(|_| {
            placeholders.set("x", &value);
            value = placeholders.replaced("%(x)%(x)")?;
            Ok::<_, String>(())
        });
        assert!(grown.is_err());
    }
}
