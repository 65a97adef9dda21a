//! The sections that are put together while servers are read.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use toml::Value;

use crate::section::Section;

/// Sections outside of sites, and the names that were given.
#[derive(Debug, Default)]
pub struct Output {
    upstreams: RefCell<Upstreams>,
    /// The keys of `[store]`.
    pub store: RefCell<Section>,
    /// The keys at the top of the file.
    pub top: RefCell<Section>,
    /// The number of files that the user must write.
    files: Cell<usize>,
    /// The names of files that stand for directives, by the numbers of these.
    written: RefCell<HashMap<usize, String>>,
    /// Comments with the lines of these files.
    file_comments: RefCell<Vec<String>>,
}

#[derive(Debug, Default)]
struct Upstreams {
    sections: Vec<Section>,
    /// The names by the rest of a section.
    known: HashMap<(String, String), String>,
    /// How often a name was wanted.
    wanted: HashMap<String, usize>,
}

impl Output {
    /// Returns the name of the upstream with these keys, of which the first is not its name. An
    /// upstream that is the same as another one is written once. `wanted` is the name that it
    /// should have.
    pub fn upstream(&self, wanted: &str, mut section: Section) -> String {
        let mut upstreams = self.upstreams.borrow_mut();
        let wanted = allowed_name(wanted);
        let keys: String =
            section.keys.iter().map(|(key, value)| format!("{key}={value}\n")).collect();
        if let Some(name) = upstreams.known.get(&(wanted.clone(), keys.clone())) {
            return name.clone();
        }
        let count = upstreams.wanted.entry(wanted.clone()).or_default();
        *count += 1;
        let name = if *count == 1 { wanted.clone() } else { format!("{wanted}-{count}") };
        section.keys.insert(0, ("name".into(), Value::String(name.clone())));
        upstreams.sections.push(section);
        upstreams.known.insert((wanted, keys), name.clone());
        name
    }

    /// Adds paths to `accel_redirect` of the upstreams with these names.
    pub fn add_accel_redirect(&self, names: &[String], path: &str, directory: &str) {
        let mut upstreams = self.upstreams.borrow_mut();
        for section in &mut upstreams.sections {
            let name = section.get("name").and_then(Value::as_str).unwrap_or_default();
            if names.iter().any(|other| other == name) {
                let table = section.get("accel_redirect").and_then(Value::as_table);
                let mut table = table.cloned().unwrap_or_default();
                table.insert(path.to_owned(), super::units::text(directory));
                section.set("accel_redirect", table);
            }
        }
    }

    /// Returns the name of the file that stands for the directive with this number. Its lines are
    /// put into comments.
    pub fn written_file(
        &self,
        number: usize,
        start: &str,
        end: &str,
        lines: impl FnOnce() -> Vec<String>,
    ) -> String {
        if let Some(name) = self.written.borrow().get(&number) {
            return name.clone();
        }
        let name = self.file_name(start, end);
        self.written.borrow_mut().insert(number, name.clone());
        let mut comments = self.file_comments.borrow_mut();
        comments.push(format!("Write the file {name} with these lines, as they are:"));
        comments.extend(lines().into_iter().map(|line| format!("    {line}")));
        name
    }

    /// Returns the comments with lines of files.
    pub fn take_file_comments(&self) -> Vec<String> {
        self.file_comments.take()
    }

    /// Returns the sections of the upstreams.
    pub fn take_upstreams(&self) -> Vec<Section> {
        std::mem::take(&mut self.upstreams.borrow_mut().sections)
    }

    /// Returns a name for a file that the user must write.
    pub fn file_name(&self, start: &str, end: &str) -> String {
        self.files.set(self.files.get() + 1);
        format!("{start}-{}{end}", self.files.get())
    }
}

/// Returns a name that an upstream may have.
fn allowed_name(wanted: &str) -> String {
    let allowed = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
    let name: String = wanted.chars().map(allowed).take(50).collect();
    let name = name.trim_matches('-');
    if name.is_empty() { "server".into() } else { name.to_owned() }
}
