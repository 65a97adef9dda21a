//! A listener of a `kirin.toml` while it is made.

use toml::{Table, Value};

use crate::section::Section;

/// A listener and its TLS.
#[derive(Debug)]
pub(crate) struct Listener {
    /// The address, as Kirin writes it.
    pub(crate) address: String,
    /// The section `[[listener]]`.
    pub(crate) section: Section,
    /// The section `[listener.tls]`; without keys there is no TLS.
    pub(crate) tls: Section,
}

impl Listener {
    /// Returns a listener without TLS.
    pub(crate) fn new(address: &str) -> Self {
        let mut section = Section::new("[[listener]]");
        section.set("address", address);
        let tls = Section::new("[listener.tls]");
        Self { address: address.to_owned(), section, tls }
    }

    /// Adds a certificate, unless it is there already.
    pub(crate) fn certificate(&mut self, chain: &str, key: &str) {
        let certificate = Value::Table(Table::from_iter([
            ("chain".to_owned(), Value::from(chain)),
            ("key".to_owned(), Value::from(key)),
        ]));
        append(&mut self.tls, "certificates", certificate);
    }

    /// Returns its sections.
    pub(crate) fn into_sections(self) -> impl Iterator<Item = Section> {
        let tls = (!self.tls.keys.is_empty()).then_some(self.tls);
        std::iter::once(self.section).chain(tls)
    }
}

/// Appends a value to the list that a key has, unless the list has it already.
pub(crate) fn append(section: &mut Section, key: &str, value: Value) {
    match section.keys.iter_mut().find(|(name, _)| name == key) {
        Some((_, Value::Array(list))) => {
            if !list.contains(&value) {
                list.push(value);
            }
        }
        _ => section.set(key, Value::Array(vec![value])),
    }
}
