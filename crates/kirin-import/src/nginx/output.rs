//! The sections that are put together while servers are read.

use std::cell::RefCell;
use std::collections::HashMap;

use toml::Value;

use crate::report::ImportedFile;
use crate::section::Section;

/// Sections outside of sites, and the names that were given.
#[derive(Debug, Default)]
pub struct Output {
    upstreams: RefCell<Upstreams>,
    /// The keys of `[store]`.
    pub store: RefCell<Section>,
    /// The keys at the top of the file.
    pub top: RefCell<Section>,
    /// The files beside the `kirin.toml`.
    files: RefCell<Vec<ImportedFile>>,
    /// The names of files that stand for directives, by the numbers of these.
    written: RefCell<HashMap<usize, String>>,
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

    /// Returns the name of the file that stands for the directive with this number. It is added
    /// unless it is there already.
    pub fn file_of(
        &self,
        number: usize,
        start: &str,
        end: &str,
        lines: impl FnOnce() -> Vec<String>,
    ) -> String {
        if let Some(name) = self.written.borrow().get(&number) {
            return name.clone();
        }
        let name = self.add_file(start, end, &lines());
        self.written.borrow_mut().insert(number, name.clone());
        name
    }

    /// Returns the files.
    pub fn take_files(&self) -> Vec<ImportedFile> {
        self.files.take()
    }

    /// Returns the sections of the upstreams.
    pub fn take_upstreams(&self) -> Vec<Section> {
        std::mem::take(&mut self.upstreams.borrow_mut().sections)
    }

    /// Adds a file, and returns its name.
    pub fn add_file(&self, start: &str, end: &str, lines: &[String]) -> String {
        let mut files = self.files.borrow_mut();
        let name = format!("{start}-{}{end}", files.len() + 1);
        let text = lines.iter().map(|line| format!("{line}\n")).collect();
        files.push(ImportedFile { name: name.clone(), text });
        name
    }
}

/// Returns a name that an upstream may have.
fn allowed_name(wanted: &str) -> String {
    let allowed = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
    let name: String = wanted.chars().map(allowed).take(50).collect();
    let name = name.trim_matches('-');
    if name.is_empty() { "server".into() } else { name.to_owned() }
}
