//! A table, and how it is written as text, Markdown and CSV.

use std::fmt::Write;

use crate::report::ReportFormat;

/// A table. Each row has a cell for each column.
pub(super) struct ReportTable {
    columns: Vec<ReportColumn>,
    rows: Vec<Vec<String>>,
    /// Whether the last row is a total.
    has_total: bool,
}

struct ReportColumn {
    title: String,
    is_text: bool,
}

impl ReportTable {
    /// Creates a table from the titles of its columns. The last `texts` of them are texts, and the
    /// others are numbers.
    pub(super) fn new(titles: &[impl AsRef<str>], texts: usize) -> Self {
        let columns = titles
            .iter()
            .enumerate()
            .map(|(at, title)| ReportColumn {
                title: title.as_ref().to_owned(),
                is_text: at + texts >= titles.len(),
            })
            .collect();
        Self { columns, rows: Vec::new(), has_total: false }
    }

    /// Adds a row.
    pub(super) fn push(&mut self, row: Vec<String>) {
        self.rows.push(row);
    }

    /// Adds the total as the last row.
    pub(super) fn push_total(&mut self, row: Vec<String>) {
        self.rows.push(row);
        self.has_total = true;
    }

    /// Writes the table. `all` is the number of rows before the limit.
    pub(super) fn write(&self, output: ReportFormat, all: usize) -> String {
        match output {
            ReportFormat::Text => self.text(all),
            ReportFormat::Markdown => self.markdown(),
            ReportFormat::Csv | ReportFormat::Json => self.csv(),
        }
    }

    fn text(&self, all: usize) -> String {
        let width = |text: &str| text.chars().count();
        let widths: Vec<usize> = self
            .columns
            .iter()
            .enumerate()
            .map(|(at, column)| {
                let cells = self.rows.iter().filter_map(|row| row.get(at));
                cells.map(|cell| width(cell)).max().unwrap_or(0).max(width(&column.title))
            })
            .collect();
        let mut out = String::new();
        let titles: Vec<_> = self.columns.iter().map(|column| column.title.clone()).collect();
        for row in std::iter::once(&titles).chain(&self.rows) {
            let mut line = String::new();
            for ((cell, column), width) in row.iter().zip(&self.columns).zip(&widths) {
                if !line.is_empty() {
                    line.push_str("  ");
                }
                let _ = match column.is_text {
                    true => write!(line, "{cell:<width$}"),
                    false => write!(line, "{cell:>width$}"),
                };
            }
            out.push_str(line.trim_end());
            out.push('\n');
        }
        let shown = self.rows.len() - usize::from(self.has_total);
        if shown < all {
            let _ = writeln!(out, "{shown} of {all} rows; the total is that of all");
        }
        out
    }

    fn markdown(&self) -> String {
        let mut out = String::new();
        let line = |out: &mut String, cells: &mut dyn Iterator<Item = String>| {
            for cell in cells {
                let _ = write!(out, "| {cell} ");
            }
            out.push_str("|\n");
        };
        line(&mut out, &mut self.columns.iter().map(|column| column.title.clone()));
        let rule = |column: &ReportColumn| if column.is_text { "---" } else { "---:" }.to_owned();
        line(&mut out, &mut self.columns.iter().map(rule));
        for row in &self.rows {
            line(&mut out, &mut row.iter().map(|cell| escape_markdown(cell)));
        }
        out
    }

    /// Writes the rows without the total, because a program adds up itself.
    fn csv(&self) -> String {
        let mut out = String::new();
        let titles: Vec<_> = self.columns.iter().map(|column| column.title.clone()).collect();
        let shown = self.rows.len() - usize::from(self.has_total);
        for row in std::iter::once(&titles).chain(self.rows.iter().take(shown)) {
            for (at, cell) in row.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                if cell.contains(['"', ',', '\n', '\r']) {
                    let _ = write!(out, "\"{}\"", cell.replace('"', "\"\""));
                } else {
                    out.push_str(cell);
                }
            }
            out.push_str("\r\n");
        }
        out
    }
}

/// Escapes what Markdown would read as markup. Strangers choose the words of patterns.
fn escape_markdown(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if "\\`*_[]<>|~&!".contains(c) {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}
