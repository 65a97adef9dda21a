//! A table of text with aligned columns.

/// A table. Columns in which all cells are numbers are aligned to the right.
pub struct TextTable {
    /// The headings and then the rows.
    rows: Vec<Vec<String>>,
}

impl TextTable {
    /// Returns a table without rows.
    pub fn new(headings: &[&str]) -> Self {
        Self { rows: vec![headings.iter().map(|heading| (*heading).to_owned()).collect()] }
    }

    /// Adds a row with a cell for each column.
    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// Returns whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows.len() == 1
    }

    /// Returns the lines. A column without any text below its heading is left out. `paint` gives
    /// the line of headings its style.
    pub fn text(&self, paint: impl Fn(&str) -> String) -> String {
        let [headings, rows @ ..] = self.rows.as_slice() else { return String::new() };
        let cells = |column: usize| rows.iter().filter_map(move |row| row.get(column));
        let columns: Vec<Column> = (0..headings.len())
            .filter(|column| cells(*column).any(|cell| !cell.is_empty()))
            .map(|index| Column {
                index,
                width: cells(index)
                    .chain([&headings[index]])
                    .map(|cell| cell.chars().count())
                    .max()
                    .unwrap_or_default(),
                is_numeric: cells(index).all(|cell| is_number(cell)),
            })
            .collect();
        let mut text = String::new();
        for (number, row) in self.rows.iter().enumerate() {
            let cells: Vec<String> = columns.iter().map(|column| column.cell(row)).collect();
            let line = cells.join("  ");
            let line = line.trim_end();
            text.push_str(&if number == 0 { paint(line) } else { line.to_owned() });
            text.push('\n');
        }
        text
    }
}

struct Column {
    index: usize,
    /// The width in characters.
    width: usize,
    is_numeric: bool,
}

impl Column {
    fn cell(&self, row: &[String]) -> String {
        let text = row.get(self.index).map(String::as_str).unwrap_or_default();
        match self.is_numeric {
            true => format!("{text:>width$}", width = self.width),
            false => format!("{text:width$}", width = self.width),
        }
    }
}

/// Returns whether a cell is empty, or a number, perhaps with a unit behind it.
fn is_number(cell: &str) -> bool {
    let number = cell.split(' ').next().unwrap_or_default();
    number.chars().all(|c| c.is_ascii_digit() || matches!(c, ',' | '.'))
        && cell.chars().next().is_none_or(|first| first.is_ascii_digit())
        && !number.contains("..")
        && number.matches('.').count() < 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_on_the_right_and_empty_columns_are_left_out() {
        let mut table = TextTable::new(&["name", "none", "count", "time"]);
        assert!(table.is_empty());
        table.row(vec!["é".into(), "".into(), "1,234".into(), "".into()]);
        table.row(vec!["longer".into(), "".into(), "5".into(), "1.5 ms".into()]);
        assert!(!table.is_empty());
        assert_eq!(
            table.text(|heading| format!("[{heading}]")),
            "[name    count    time]\né       1,234\nlonger      5  1.5 ms\n"
        );
    }

    #[test]
    fn an_address_is_not_aligned_as_a_number() {
        for (cell, expected) in
            [("12", true), ("1,234", true), ("1.5 ms", true), ("3 of 10", true), ("", true)]
        {
            assert_eq!(is_number(cell), expected, "{cell}");
        }
        for cell in ["127.0.0.1:80", "127.0.0.1", "ready", "10.0.0.1 x", "."] {
            assert!(!is_number(cell), "{cell}");
        }
    }
}
