//! The files of `redirects`, each read once.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kirin_gateway::routing::redirect_file::{self, LineError};
use kirin_gateway::routing::redirect_table::RedirectTable;

use crate::or_false::TextOrFalse;
use crate::source::{ConfigSource, ErrorCollector};
use crate::text_file::read_regular;
use crate::written::Written;

/// The most errors of one file that are shown. A file in another format has one in each line.
const MAX_SHOWN_ERRORS: usize = 20;

/// The longest part of a line that an error shows, in characters.
const MAX_SHOWN_CHARACTERS: usize = 120;

/// The tables that routes name. Routes that name the same file share one. A table is missing if its
/// file has errors, which are shown once.
#[derive(Default)]
pub struct RedirectTables(RefCell<HashMap<PathBuf, Option<Arc<RedirectTable>>>>);

impl RedirectTables {
    /// Returns the table of a route. Returns `None` if its file has errors.
    pub fn read(
        &self,
        file: &Written<TextOrFalse>,
        name: &str,
        source: &ConfigSource,
        errors: &mut ErrorCollector,
    ) -> Option<Arc<RedirectTable>> {
        let path = source.path(name);
        let mut tables = self.0.borrow_mut();
        let table = tables.entry(path).or_insert_with_key(|path| {
            read_file(path, name, file.span(), source, errors).map(Arc::new)
        });
        table.clone()
    }

    /// Returns the paths of the files.
    pub fn into_paths(self) -> Vec<PathBuf> {
        let mut paths: Vec<PathBuf> = self.0.into_inner().into_keys().collect();
        paths.sort_unstable();
        paths
    }
}

fn read_file(
    path: &Path,
    name: &str,
    span: Range<usize>,
    source: &ConfigSource,
    errors: &mut ErrorCollector,
) -> Option<RedirectTable> {
    let bytes = match read_regular(path) {
        Ok(bytes) => bytes,
        Err(error) => {
            let message = format!("`redirects`: {} cannot be read: {error}", path.display());
            errors.push(source.error(span, message));
            return None;
        }
    };
    match redirect_file::parse(name, &bytes) {
        Ok(table) => Some(table),
        Err(of_lines) => {
            push_errors(name, &of_lines, &span, source, errors);
            None
        }
    }
}

/// Shows the errors of a file, which `span` names.
pub fn push_errors(
    name: &str,
    of_lines: &[LineError],
    span: &Range<usize>,
    source: &ConfigSource,
    errors: &mut ErrorCollector,
) {
    for LineError { number, line, message } in of_lines.iter().take(MAX_SHOWN_ERRORS) {
        let shown: String = line.chars().take(MAX_SHOWN_CHARACTERS).collect();
        let message = match shown.is_empty() {
            true => message.clone(),
            false => format!("{message}\n    {shown}"),
        };
        errors.push(source.error_in_line(name, *number, span.start, message));
    }
    if let Some(more @ 1..) = of_lines.len().checked_sub(MAX_SHOWN_ERRORS) {
        let message = format!("`redirects`: {name} has {more} more errors");
        errors.push(source.error(span.clone(), message));
    }
}

#[cfg(test)]
#[path = "redirect_tables_tests.rs"]
mod tests;
