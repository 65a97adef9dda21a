//! A configuration of Apache as directives and sections, with other files in their places.

use std::collections::HashMap;

use crate::apache::lines::{lines, words};
use crate::draft::Draft;
use crate::error::ImportError;
use crate::files::Files;
use crate::report::Place;
use crate::text::VARIABLE;

/// The most sections, and the most files, inside each other.
const MOST_DEPTH: usize = 32;

/// The most directives of all files together.
const MOST_DIRECTIVES: usize = 100_000;

/// What Debian's `/etc/apache2/envvars` sets.
const DEBIAN: [(&str, &str); 6] = [
    ("APACHE_LOG_DIR", "/var/log/apache2"),
    ("APACHE_RUN_USER", "www-data"),
    ("APACHE_RUN_GROUP", "www-data"),
    ("APACHE_RUN_DIR", "/var/run/apache2"),
    ("APACHE_LOCK_DIR", "/var/lock/apache2"),
    ("APACHE_PID_FILE", "/var/run/apache2/apache2.pid"),
];

/// A directive or a section.
#[derive(Debug, Clone)]
pub(crate) struct Directive {
    pub(crate) place: Place,
    /// The name in lower case, without `<`.
    pub(crate) name: String,
    pub(crate) arguments: Vec<String>,
    /// The directives of a section.
    pub(crate) inner: Option<Vec<Directive>>,
    /// The line as it is written.
    pub(crate) line: String,
}

impl Directive {
    /// Returns an argument, or an empty text.
    pub(crate) fn argument(&self, number: usize) -> &str {
        self.arguments.get(number).map_or("", String::as_str)
    }

    /// Returns the directives of a section.
    pub(crate) fn body(&self) -> &[Directive] {
        self.inner.as_deref().unwrap_or_default()
    }
}

/// Reads a file and those that it includes. Sections that depend on modules are read as if all
/// modules were there.
///
/// # Errors
/// Returns an error if a file cannot be read or is malformed.
pub(crate) fn read(
    file: &str,
    files: &dyn Files,
    draft: &mut Draft,
) -> Result<Vec<Directive>, ImportError> {
    let root = file.rsplit_once('/').map_or("", |(directory, _)| directory).to_owned();
    let defined = DEBIAN.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let mut reader =
        Reader { files, draft, root, defined: defined.collect(), open: Vec::new(), count: 0 };
    reader.file(file, &Place { file: file.to_owned(), line: 1 })
}

struct Reader<'a> {
    files: &'a dyn Files,
    draft: &'a mut Draft,
    /// The directory of relative paths.
    root: String,
    defined: HashMap<String, String>,
    /// The files that are being read.
    open: Vec<String>,
    count: usize,
}

/// A section that is not closed yet.
struct Open {
    section: Directive,
    inner: Vec<Directive>,
    /// Whether its directives stand in its place.
    dissolved: bool,
    /// Whether its directives are left out.
    skipped: bool,
}

impl Reader<'_> {
    fn file(&mut self, path: &str, from: &Place) -> Result<Vec<Directive>, ImportError> {
        let error = |message: String| ImportError { place: from.clone(), message };
        if self.open.iter().any(|open| open == path) || self.open.len() == MOST_DEPTH {
            return Err(error(format!("`{path}` includes itself, or too many files do")));
        }
        let text =
            self.files.read(path).map_err(|message| error(format!("`{path}`: {message}")))?;
        self.open.push(path.to_owned());
        let mut found = Vec::new();
        let mut sections: Vec<Open> = Vec::new();
        for line in lines(&text) {
            let place = Place { file: path.to_owned(), line: line.number };
            if let Some(name) = line.text.strip_prefix("</") {
                let name = name.trim_end_matches('>').trim().to_ascii_lowercase();
                let open = sections.pop().filter(|open| open.section.name == name);
                let Some(open) = open else {
                    let message = format!("`</{name}>` closes no section");
                    return Err(ImportError { place, message });
                };
                let outer = sections.last_mut().map_or(&mut found, |open| &mut open.inner);
                if open.dissolved {
                    outer.extend(open.inner);
                } else if !open.skipped {
                    outer.push(Directive { inner: Some(open.inner), ..open.section });
                }
                continue;
            }
            if sections.iter().any(|open| open.skipped) && !line.text.starts_with('<') {
                continue;
            }
            let directive = self.directive(&line.text, place)?;
            if directive.inner.is_some() {
                if sections.len() == MOST_DEPTH {
                    let message = format!("more than {MOST_DEPTH} sections inside each other");
                    return Err(ImportError { place: directive.place, message });
                }
                let outer = sections.iter().any(|open| open.skipped);
                let open = self.section(directive, outer);
                sections.push(open);
                continue;
            }
            let new = self.special(directive)?;
            sections.last_mut().map_or(&mut found, |open| &mut open.inner).extend(new);
        }
        if let Some(open) = sections.pop() {
            let message = format!("`<{}>` is not closed", open.section.name);
            return Err(ImportError { place: open.section.place, message });
        }
        self.open.pop();
        Ok(found)
    }

    /// Reads a line: a directive, or the beginning of a section.
    fn directive(&mut self, text: &str, place: Place) -> Result<Directive, ImportError> {
        self.count += 1;
        if self.count > MOST_DIRECTIVES {
            let message = format!("more than {MOST_DIRECTIVES} directives in all files");
            return Err(ImportError { place, message });
        }
        let text = self.with_variables(text);
        let section = text.strip_prefix('<').map(|section| section.trim_end_matches('>').trim());
        let mut words = words(section.unwrap_or(&text)).into_iter();
        let name = words.next().unwrap_or_default().to_ascii_lowercase();
        let inner = section.map(|_| Vec::new());
        let line = text.replace(VARIABLE, "$");
        Ok(Directive { place, name, arguments: words.collect(), inner, line })
    }

    /// Replaces `${NAME}`. A name that is not defined is a variable of the environment.
    fn with_variables(&self, text: &str) -> String {
        let mut written = String::new();
        let mut rest = text;
        while let Some(start) = rest.find("${") {
            let (before, behind) = rest.split_at(start);
            written.push_str(before);
            let inner = behind.get(2..).unwrap_or_default();
            let end = inner.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            let name = end.and_then(|end| inner.split_at_checked(end));
            match name.filter(|(name, after)| !name.is_empty() && after.starts_with('}')) {
                Some((name, after)) => {
                    match self.defined.get(name) {
                        Some(value) => written.push_str(value),
                        None => written.push_str(&format!("{VARIABLE}{{{name}}}")),
                    }
                    rest = after.get(1..).unwrap_or_default();
                }
                None => {
                    written.push_str("${");
                    rest = inner;
                }
            }
        }
        written.push_str(rest);
        written
    }

    fn section(&mut self, section: Directive, outer_skipped: bool) -> Open {
        let first = section.argument(0).to_owned();
        let (name, negated) = match first.strip_prefix('!') {
            Some(name) => (name, true),
            None => (first.as_str(), false),
        };
        let holds = match section.name.as_str() {
            "ifmodule" => Some(!negated),
            "ifdefine" => Some(self.defined.contains_key(name) != negated),
            "ifversion" => Some(true),
            "iffile" | "ifdirective" | "ifsection" => Some(!negated),
            _ => None,
        };
        let open = |dissolved, skipped| Open {
            section: section.clone(),
            inner: Vec::new(),
            dissolved,
            skipped: skipped || outer_skipped,
        };
        match holds {
            None => open(false, false),
            Some(true) => open(!outer_skipped, false),
            Some(false) => {
                if !outer_skipped {
                    let text = "its condition does not hold here: what is in it is not read";
                    self.draft.notes.left_out(&section.place, &section.line, text);
                }
                open(false, true)
            }
        }
    }

    /// Carries out what is about files and names. Returns the directives in its place.
    fn special(&mut self, directive: Directive) -> Result<Vec<Directive>, ImportError> {
        match directive.name.as_str() {
            "define" => {
                let value = directive.argument(1).to_owned();
                self.defined.insert(directive.argument(0).to_owned(), value);
            }
            "undefine" => drop(self.defined.remove(directive.argument(0))),
            "serverroot" => directive.argument(0).clone_into(&mut self.root),
            "include" | "includeoptional" => {
                let pattern = self.absolute(directive.argument(0));
                let found = self.files.matching(&pattern);
                let star = pattern.contains(['*', '?']);
                if found.is_empty() && !star && directive.name == "include" {
                    let message = format!("`{pattern}`: there is no such file");
                    return Err(ImportError { place: directive.place, message });
                }
                let mut directives = Vec::new();
                for path in found {
                    directives.extend(self.file(&path, &directive.place)?);
                }
                return Ok(directives);
            }
            _ => return Ok(vec![directive]),
        }
        self.draft.notes.carried(&directive.place, &directive.line, "");
        Ok(Vec::new())
    }

    fn absolute(&self, path: &str) -> String {
        if path.starts_with('/') || self.root.is_empty() {
            return path.to_owned();
        }
        format!("{}/{path}", self.root.trim_end_matches('/'))
    }
}
