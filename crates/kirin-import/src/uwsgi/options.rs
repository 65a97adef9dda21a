//! The options of a configuration, with those of the files that it includes.

use crate::error::ImportError;
use crate::files::Files;
use crate::report::Place;
use crate::uwsgi::ini::{IniLine, lines};
use crate::uwsgi::placeholders::Placeholders;

/// The most files inside each other.
const MOST_DEPTH: usize = 16;

/// The most options of all files together.
const MOST_OPTIONS: usize = 100_000;

/// An option.
#[derive(Debug, Clone)]
pub(crate) struct UwsgiOption {
    pub(crate) place: Place,
    pub(crate) key: String,
    /// The value with its placeholders replaced. `true` if there is none.
    pub(crate) value: String,
    /// Whether it depends on a condition (`if-env`) or is repeated (`for`).
    pub(crate) conditional: bool,
    /// Whether its value stands in that of another option.
    pub(crate) used: bool,
}

impl UwsgiOption {
    /// Returns the option as it is written.
    pub(crate) fn directive(&self) -> String {
        format!("{} = {}", self.key, self.value)
    }
}

/// Reads the options of a file and of those that it includes.
///
/// # Errors
/// Returns an error if a file cannot be read or is malformed.
pub(crate) fn options(file: &str, files: &dyn Files) -> Result<Vec<UwsgiOption>, ImportError> {
    let mut reader = Reader {
        files,
        placeholders: Placeholders::new(file),
        options: Vec::new(),
        open: Vec::new(),
        conditions: 0,
    };
    reader.file(file, "uwsgi", &Place { file: file.to_owned(), line: 1 })?;
    let Reader { mut options, placeholders, .. } = reader;
    options.iter_mut().for_each(|option| option.used = placeholders.is_used(&option.key));
    Ok(options)
}

struct Reader<'a> {
    files: &'a dyn Files,
    placeholders: Placeholders,
    options: Vec<UwsgiOption>,
    /// The files and sections that are being read.
    open: Vec<(String, String)>,
    /// How many conditions and loops are open.
    conditions: usize,
}

impl Reader<'_> {
    fn file(&mut self, path: &str, section: &str, from: &Place) -> Result<(), ImportError> {
        let error = |message: String| ImportError { place: from.clone(), message };
        let text =
            self.files.read(path).map_err(|message| error(format!("`{path}`: {message}")))?;
        let this = (path.to_owned(), section.to_owned());
        if self.open.contains(&this) {
            return Err(error(format!("`{path}` includes itself")));
        }
        if self.open.len() == MOST_DEPTH {
            return Err(error(format!("more than {MOST_DEPTH} files include each other")));
        }
        self.open.push(this);
        let before = self.placeholders.enter(path);
        let place = |line| Place { file: path.to_owned(), line };
        let found =
            lines(&text).map_err(|(line, message)| ImportError { place: place(line), message })?;
        for line in found.iter().filter(|line| line.section == section) {
            self.line(line, path, &place(line.line))?;
        }
        self.placeholders.enter(&before);
        self.open.pop();
        Ok(())
    }

    fn line(&mut self, line: &IniLine, path: &str, place: &Place) -> Result<(), ImportError> {
        let error = |message| ImportError { place: place.clone(), message };
        let value = self.placeholders.replaced(line.value.unwrap_or("true")).map_err(error)?;
        let key = line.key.replace('_', "-");
        match key.as_str() {
            "ini" | "include" | "inherit" => return self.include(&value, path, place),
            "set-placeholder" | "set-ph" | "set" => {
                let (name, value) = value.split_once('=').unwrap_or((&value, ""));
                self.placeholders.set(name.trim(), value.trim());
                return Ok(());
            }
            "end" | "endif" | "endfor" | "end-if" | "end-for" => {
                self.conditions = self.conditions.saturating_sub(1);
                return Ok(());
            }
            _ => self.placeholders.set(line.key, &value),
        }
        let opens = key == "for" || key.starts_with("for-") || key.starts_with("if-");
        if opens {
            self.conditions += 1;
        }
        if self.options.len() == MOST_OPTIONS {
            return Err(error(format!("more than {MOST_OPTIONS} options in all files")));
        }
        let conditional = self.conditions > 0;
        self.options.push(UwsgiOption {
            place: place.clone(),
            key,
            value,
            conditional,
            used: false,
        });
        Ok(())
    }

    /// Reads `FILE`, `FILE:SECTION` or `:SECTION`.
    fn include(&mut self, value: &str, path: &str, place: &Place) -> Result<(), ImportError> {
        let (file, section) = value.rsplit_once(':').unwrap_or((value, "uwsgi"));
        if file.is_empty() {
            return self.file(path, section, place);
        }
        let beside = path.rsplit_once('/').map(|(directory, _)| format!("{directory}/{file}"));
        match beside.filter(|_| !file.starts_with('/')) {
            Some(beside) if self.files.matching(file).is_empty() => {
                self.file(&beside, section, place)
            }
            _ => self.file(file, section, place),
        }
    }
}
