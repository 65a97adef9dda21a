//! A section of a `kirin.toml`.

use std::fmt::{self, Display, Formatter};

use toml::Value;

/// A section of a `kirin.toml`: its header and its keys.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Section {
    /// The header, such as `[[listener]]` or `[store]`. Empty for the keys at the top of the file,
    /// which come before all sections.
    pub header: String,
    /// Lines of comments before the header, without `#`.
    pub comments: Vec<String>,
    /// The keys with their values, in the order in which they are written.
    pub keys: Vec<(String, Value)>,
}

impl Section {
    /// Returns a section without keys.
    pub fn new(header: &str) -> Self {
        Self { header: header.to_owned(), ..Self::default() }
    }

    /// Adds a line of comment before the header.
    pub fn comment(&mut self, line: impl Into<String>) {
        self.comments.push(line.into());
    }

    /// Sets a key. A value that it has already is replaced.
    pub fn set(&mut self, key: &str, value: impl Into<Value>) {
        let value = value.into();
        match self.keys.iter_mut().find(|(name, _)| name == key) {
            Some((_, old)) => *old = value,
            None => self.keys.push((key.to_owned(), value)),
        }
    }

    /// Changes the table of a key, which is empty if there is none yet. Another value is replaced.
    pub fn change_table(&mut self, key: &str, change: impl FnOnce(&mut toml::Table)) {
        let old = self.keys.iter_mut().find(|(name, _)| name == key).map(|(_, value)| value);
        let mut table = match old {
            Some(Value::Table(table)) => std::mem::take(table),
            _ => toml::Table::new(),
        };
        change(&mut table);
        self.set(key, table);
    }

    /// Returns the value of a key.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.keys.iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }
}

impl Display for Section {
    /// Writes the section with a line break at its end.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for comment in &self.comments {
            // A line break would end the comment, and TOML allows no other control characters.
            let comment = comment.replace(|c: char| c.is_control() && c != '\t', " ");
            writeln!(f, "{}", format!("# {comment}").trim_end())?;
        }
        if !self.header.is_empty() {
            writeln!(f, "{}", self.header)?;
        }
        for (key, value) in &self.keys {
            writeln!(f, "{key} = {value}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_so_that_toml_reads_them_again() {
        let mut section = Section::new("[[route]]");
        section.comment("nginx.conf:3\nx = \u{1b}[1m1");
        section.set("path", "/a \"b\"\\\n");
        section.set("headers", toml::Table::from_iter([("X-A".to_owned(), Value::from("é\u{1}"))]));
        section.set("try", vec!["files:public"]);
        let text = section.to_string();
        let read: toml::Table = text.parse().expect("TOML");
        let route = &read["route"][0];
        assert_eq!(route["path"].as_str(), Some("/a \"b\"\\\n"), "{text}");
        assert_eq!(route["headers"]["X-A"].as_str(), Some("é\u{1}"), "{text}");
        assert!(text.starts_with("# nginx.conf:3 x =  [1m1\n[[route]]\n"), "{text}");
    }
}
