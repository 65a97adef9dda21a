//! A table for an operator. `kirin top` draws it in a terminal or prints it, and the status page
//! writes it as HTML.

use std::cmp::Ordering;

/// A table.
#[derive(Clone, Debug, Default)]
pub struct ViewTable {
    /// The title.
    pub title: &'static str,
    /// The columns.
    pub columns: Vec<ViewColumn>,
    /// The rows. Each has a cell for each column.
    pub rows: Vec<Vec<ViewCell>>,
    /// The index of the column by which the rows are ordered at first.
    pub order: Option<usize>,
}

/// A column.
#[derive(Clone, Copy, Debug)]
pub struct ViewColumn {
    /// The heading.
    pub name: &'static str,
    /// Whether its cells are numbers: to the right, and the largest first.
    pub is_number: bool,
    /// The columns with the smallest values disappear first if there is no room. 9 stays.
    pub priority: u8,
}

/// A cell.
#[derive(Clone, Debug, PartialEq)]
pub struct ViewCell {
    /// The text.
    pub text: String,
    /// The number by which rows are ordered. `None` in a column of texts.
    pub number: Option<f64>,
}

/// Returns a column of numbers.
pub const fn number(name: &'static str, priority: u8) -> ViewColumn {
    ViewColumn { name, is_number: true, priority }
}

/// Returns a column of texts.
pub const fn text(name: &'static str, priority: u8) -> ViewColumn {
    ViewColumn { name, is_number: false, priority }
}

impl ViewCell {
    /// Returns the cell of a number, as `write` writes it.
    pub fn of(number: f64, write: fn(f64) -> String) -> Self {
        Self { text: write(number), number: Some(number) }
    }

    /// Returns the cell of a text. Control characters in it are replaced, because they could move
    /// the cursor of a terminal; so are marks that turn the direction of writing.
    pub fn text(text: impl AsRef<str>) -> Self {
        let shown = |character: char| match character {
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' => '?',
            _ if character.is_control() => '?',
            _ => character,
        };
        Self { text: text.as_ref().chars().map(shown).collect(), number: None }
    }
}

impl ViewTable {
    /// Orders the rows by a column: numbers from the largest, texts from A.
    pub fn sort(&mut self, column: usize, is_reversed: bool) {
        let compare = |a: &Vec<ViewCell>, b: &Vec<ViewCell>| {
            let order = match (a.get(column), b.get(column)) {
                (Some(a), Some(b)) => match (a.number, b.number) {
                    (Some(a), Some(b)) => b.total_cmp(&a),
                    _ => a.text.cmp(&b.text),
                },
                _ => Ordering::Equal,
            };
            if is_reversed { order.reverse() } else { order }
        };
        self.rows.sort_by(compare);
    }

    /// Keeps the rows that have a text in one of their cells. Case does not matter.
    pub fn filter(&mut self, text: &str) {
        let text = text.to_lowercase();
        self.rows.retain(|row| row.iter().any(|cell| cell.text.to_lowercase().contains(&text)));
    }

    /// Returns the columns that fit into a width, and their widths. The last text column gets what
    /// is left.
    pub fn layout(&self, width: usize) -> Vec<(usize, usize)> {
        let wanted = |(index, column): (usize, &ViewColumn)| {
            let cells = self.rows.iter().filter_map(|row| row.get(index));
            let longest = cells.map(|cell| cell.text.chars().count()).max().unwrap_or_default();
            // An arrow follows the heading of the column that orders the rows.
            let arrow = usize::from(self.order == Some(index));
            (index, longest.max(column.name.len() + arrow))
        };
        let mut columns: Vec<_> = self.columns.iter().enumerate().map(wanted).collect();
        let flexible = self.columns.iter().rposition(|column| !column.is_number);
        let is_flexible = |index: usize| Some(index) == flexible;
        loop {
            let fixed: usize = columns
                .iter()
                .map(|(index, wanted)| if is_flexible(*index) { 0 } else { wanted + 1 })
                .sum();
            let room = width.saturating_sub(fixed);
            let needed = columns.iter().find(|(index, _)| is_flexible(*index));
            let needed = needed.map_or(0, |(_, wanted)| (*wanted).min(MIN_FLEXIBLE));
            let least = columns
                .iter()
                .enumerate()
                .filter(|(_, (index, _))| self.columns[*index].priority < 9)
                .min_by_key(|(_, (index, _))| self.columns[*index].priority)
                .map(|(position, _)| position);
            match least {
                Some(position) if room < needed => _ = columns.remove(position),
                _ if self.narrow(&mut columns, flexible, needed.saturating_sub(room)) => {}
                _ => {
                    for (index, wanted) in &mut columns {
                        if is_flexible(*index) {
                            *wanted = (*wanted).min(room.max(1));
                        }
                    }
                    return columns;
                }
            }
        }
    }
}

impl ViewTable {
    /// Makes the widest of the other text columns narrower by this width, but not too narrow.
    /// Returns false if nothing has changed.
    fn narrow(&self, columns: &mut [(usize, usize)], flexible: Option<usize>, by: usize) -> bool {
        let is_text = |index: usize| !self.columns[index].is_number && Some(index) != flexible;
        let texts = columns.iter_mut().filter(|(index, _)| is_text(*index));
        let Some((_, wanted)) = texts.max_by_key(|(_, wanted)| *wanted) else { return false };
        let narrower = wanted.saturating_sub(by).max(MIN_FLEXIBLE);
        let has_changed = narrower < *wanted;
        *wanted = narrower.min(*wanted);
        has_changed
    }
}

/// The width that the last text column gets before other columns disappear.
const MIN_FLEXIBLE: usize = 24;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::units;

    fn table() -> ViewTable {
        let row = |number: f64, place: &str, url: &str| {
            vec![ViewCell::of(number, units::count), ViewCell::text(place), ViewCell::text(url)]
        };
        ViewTable {
            title: "t",
            columns: vec![number("sum", 9), text("place", 1), text("url", 9)],
            rows: vec![
                row(2.0, "store", "/b"),
                row(3.0, "app:web", "/A-long-path-that-needs-room"),
                row(10.0, "files", "/c"),
            ],
            order: Some(0),
        }
    }

    fn urls(table: &ViewTable) -> Vec<&str> {
        table.rows.iter().map(|row| row[2].text.as_str()).collect()
    }

    #[test]
    fn numbers_are_ordered_from_the_largest_and_texts_from_a() {
        let mut table = table();
        table.sort(0, false);
        assert_eq!(urls(&table)[..2], ["/c", "/A-long-path-that-needs-room"]);
        table.sort(0, true);
        assert_eq!(urls(&table)[0], "/b");
        table.sort(1, false);
        assert_eq!(urls(&table)[0], "/A-long-path-that-needs-room");
        table.sort(7, false);
    }

    #[test]
    fn a_filter_looks_into_all_cells() {
        for (text, expected) in [("FILES", 1), ("a-long", 1), ("/", 3), ("nothing", 0), ("", 3)] {
            let mut table = table();
            table.filter(text);
            assert_eq!(table.rows.len(), expected, "{text}");
        }
    }

    #[test]
    fn less_important_columns_make_room() {
        let table = table();
        for (width, expected) in [
            (80, vec![(0, 4), (1, 7), (2, 28)]),
            (37, vec![(0, 4), (1, 7), (2, 24)]),
            (36, vec![(0, 4), (2, 28)]),
            (10, vec![(0, 4), (2, 5)]),
            (0, vec![(0, 4), (2, 1)]),
        ] {
            assert_eq!(table.layout(width), expected, "width {width}");
        }
    }

    #[test]
    fn a_long_text_makes_room_for_the_last_column() {
        let row = |length: usize| vec!["/".repeat(length), "x".repeat(30)];
        let table = ViewTable {
            columns: vec![text("request", 9), text("at", 9)],
            rows: vec![row(100).into_iter().map(ViewCell::text).collect()],
            ..ViewTable::default()
        };
        for (width, expected) in [
            (131, vec![(0, 100), (1, 30)]),
            (125, vec![(0, 100), (1, 24)]),
            (80, vec![(0, 55), (1, 24)]),
            (40, vec![(0, 24), (1, 15)]),
        ] {
            assert_eq!(table.layout(width), expected, "width {width}");
        }
    }

    #[test]
    fn control_characters_do_not_reach_a_terminal() {
        assert_eq!(ViewCell::text("/\u{1b}[2J\n\u{202e}x\u{9b}é").text, "/?[2J??x?é");
    }
}
