//! A `kirin.toml` while it is made.

mod free_names;
mod listener;
pub(crate) mod notes;
pub(crate) mod site;
mod upstreams;

pub(crate) use free_names::{FreeNames, name_of};
pub(crate) use listener::{Listener, append};
pub(crate) use notes::one_line;
pub(crate) use site::Site;
pub(crate) use upstreams::Upstreams;

use crate::draft::notes::Notes;
use crate::error::ImportError;
use crate::report::{Import, Place};
use crate::section::Section;
use crate::text::{VARIABLE, keep_dollars};

/// A `kirin.toml` while it is made: its parts in any order.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    pub(crate) notes: Notes,
    /// The keys at the top of the file.
    pub(crate) top: Section,
    pub(crate) listeners: Vec<Listener>,
    /// Tables of the complete program, such as `[store]`.
    pub(crate) tables: Vec<Section>,
    pub(crate) apps: Vec<Section>,
    /// The names of applications.
    pub(crate) app_names: FreeNames,
    pub(crate) upstreams: Upstreams,
    pub(crate) sites: Vec<Site>,
}

impl Draft {
    /// Returns the listener of an address. It is made if it is not there yet.
    pub(crate) fn listener(&mut self, address: &str) -> &mut Listener {
        let found = self.listeners.iter().position(|listener| listener.address == address);
        let index = found.unwrap_or_else(|| {
            self.listeners.push(Listener::new(address));
            self.listeners.len() - 1
        });
        // The index is that of an element, because there is at least one.
        let last = self.listeners.len().saturating_sub(1);
        &mut self.listeners[index.min(last)]
    }

    /// Returns the table with a header, such as `[store]`. It is made if it is not there yet.
    pub(crate) fn table(&mut self, header: &str) -> &mut Section {
        let found = self.tables.iter().position(|table| table.header == header);
        let index = found.unwrap_or_else(|| {
            self.tables.push(Section::new(header));
            self.tables.len() - 1
        });
        let last = self.tables.len().saturating_sub(1);
        &mut self.tables[index.min(last)]
    }

    /// Returns the import.
    ///
    /// # Errors
    /// Returns an error if the routes would be too many.
    pub(crate) fn finish(mut self, file: &Place) -> Result<Import, ImportError> {
        if self.sites.is_empty() {
            // Without routes Kirin does not start.
            self.sites.push(Site::default());
        }
        let mut sections = Vec::new();
        if !self.top.keys.is_empty() {
            sections.push(self.top);
        }
        sections.extend(self.listeners.into_iter().flat_map(Listener::into_sections));
        sections.extend(self.tables);
        sections.extend(self.apps);
        sections.extend(self.upstreams.into_sections());
        for site in self.sites {
            sections.extend(site.into_sections(file)?);
        }
        for section in &mut sections {
            keep_dollars(section);
            // A comment must not end where the text of another server has a line end.
            for comment in &mut section.comments {
                *comment = comment.replace(char::is_control, " ").replace(VARIABLE, "$");
            }
        }
        Ok(Import { sections, notes: self.notes.into_vec(), files: Vec::new() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_leaves_its_comment() {
        let mut draft = Draft::default();
        let mut app = Section::new("[[app]]");
        app.comment("a\nuser = \"root\"");
        draft.apps.push(app);
        let import = draft.finish(&Place { file: "f".into(), line: 1 }).expect("import");
        assert!(
            import.config().starts_with("# a user = \"root\"\n[[app]]\n"),
            "{}",
            import.config()
        );
    }
}
