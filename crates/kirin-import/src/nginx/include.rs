//! Reads the first file and everything that it includes.

use std::collections::HashSet;

use super::directive::Directive;
use super::notes::Notes;
use super::parser::{SyntaxError, parse};
use crate::files::Files;

/// The most files that include each other.
const MAX_DEPTH: usize = 16;
/// The most files in all. A file counts each time that it is included.
const MAX_FILES: usize = 10_000;
/// The most directives in all. A file may be included often, so their number has a limit.
const MAX_DIRECTIVES: usize = 500_000;

/// The blocks whose entries are data. The block has a note, and its entries have none.
const OF_DATA: [&str; 5] = ["types", "map", "geo", "split_clients", "charset_map"];

/// A complete configuration.
#[derive(Debug)]
pub struct Tree {
    /// The directives of the first file, with those of included files in place of the includes.
    pub directives: Vec<Directive>,
    /// The directory of the first file with a slash at its end, or nothing.
    pub directory: String,
}

/// Reads `file` and its includes. Each directive gets a number and an entry in `notes`.
pub fn read_tree(file: &str, files: &dyn Files, notes: &Notes) -> Result<Tree, SyntaxError> {
    let text = files.read(file).map_err(|why| SyntaxError {
        file: file.to_owned(),
        line: 1,
        message: format!("the file cannot be read: {why}"),
    })?;
    let directory = file.rfind('/').and_then(|at| file.get(..=at)).unwrap_or_default().to_owned();
    let mut reader = Reader { files, notes, directory, open: HashSet::new(), files_read: 1 };
    reader.open.insert(file.to_owned());
    let directives = reader.expand(parse(&text, file)?, None, 0)?;
    Ok(Tree { directives, directory: reader.directory })
}

struct Reader<'a> {
    files: &'a dyn Files,
    notes: &'a Notes,
    directory: String,
    /// The files that are being read, of which each includes the next one.
    open: HashSet<String>,
    files_read: usize,
}

impl Reader<'_> {
    /// Numbers `directives` and puts the content of included files in their place. `data` is the
    /// number of the block of data around them.
    fn expand(
        &mut self,
        directives: Vec<Directive>,
        data: Option<usize>,
        depth: usize,
    ) -> Result<Vec<Directive>, SyntaxError> {
        let mut expanded = Vec::new();
        for mut directive in directives {
            let is_include = directive.name == "include" && directive.args.len() == 1;
            directive.number = match data {
                Some(number) if !is_include => number,
                _ => self.notes.add(&directive),
            };
            if self.notes.len() > MAX_DIRECTIVES {
                let message = format!("more than {MAX_DIRECTIVES} directives with all includes");
                return Err(self.error(&directive, message));
            }
            if is_include {
                expanded.extend(self.include(&directive, data, depth)?);
                continue;
            }
            if let Some(block) = directive.block.take() {
                let is_data = OF_DATA.contains(&directive.name.as_str());
                let data = data.or(is_data.then_some(directive.number));
                directive.block = Some(self.expand(block, data, depth)?);
            }
            expanded.push(directive);
        }
        Ok(expanded)
    }

    fn include(
        &mut self,
        include: &Directive,
        data: Option<usize>,
        depth: usize,
    ) -> Result<Vec<Directive>, SyntaxError> {
        let pattern = match include.arg(0) {
            path if path.starts_with('/') => path.to_owned(),
            path => format!("{}{path}", self.directory),
        };
        let is_pattern = pattern.contains(['*', '?']);
        let mut paths = self.files.matching(&pattern);
        if paths.is_empty() {
            if is_pattern {
                self.notes.by_itself(include, "no file has such a name, so it includes nothing");
                return Ok(Vec::new());
            }
            paths.push(pattern);
        }
        let mut directives = Vec::new();
        for path in paths {
            self.files_read += 1;
            if self.open.contains(&path) {
                let message = format!("`{path}` includes itself, directly or by other files");
                return Err(self.error(include, message));
            }
            if depth >= MAX_DEPTH || self.files_read > MAX_FILES {
                let message = format!(
                    "too many includes: at most {MAX_DEPTH} inside each other, and {MAX_FILES} in all"
                );
                return Err(self.error(include, message));
            }
            match self.files.read(&path) {
                Err(why) => {
                    let text = format!("`{path}` cannot be read: {why}. Nothing of it is here");
                    match is_without_rules(&path) {
                        true => self.notes.left_out(include, text),
                        false => {
                            self.notes.protection_lost(include, format!("if it has some: {text}"))
                        }
                    }
                }
                Ok(text) => {
                    self.notes.carried(include, "what the file has follows");
                    self.open.insert(path.clone());
                    directives.extend(self.expand(parse(&text, &path)?, data, depth + 1)?);
                    self.open.remove(&path);
                }
            }
        }
        Ok(directives)
    }

    fn error(&self, directive: &Directive, message: String) -> SyntaxError {
        SyntaxError { file: directive.file.to_string(), line: directive.line, message }
    }
}

/// Returns whether a file of this name keeps no visitors out: parameters, media types and TLS.
fn is_without_rules(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let is_of_packages = ["mime.types", "fastcgi.conf", "fastcgi-php.conf"].contains(&name);
    is_of_packages || name.ends_with("_params") || name.contains("ssl")
}
