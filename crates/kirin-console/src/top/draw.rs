//! Draws the screen.

use kirin_observe::live::table::ViewTable;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Sparkline};

use crate::top::plain::{aligned, title};
use crate::top::screen::{Screen, View};

/// The keys, for the last line.
const KEYS: [(&str, &str); 8] = [
    ("q", "quit"),
    ("Tab", "view"),
    ("←→", "sort"),
    ("r", "reverse"),
    ("/", "filter"),
    ("Space", "pause"),
    ("w", "span"),
    ("↑↓", "scroll"),
];

const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
const REVERSED: Style = Style::new().add_modifier(Modifier::REVERSED);
const DIM: Style = Style::new().add_modifier(Modifier::DIM);

/// Draws the screen. Returns the columns of the table that are visible.
pub fn draw(frame: &mut Frame<'_>, screen: &mut Screen) -> Vec<usize> {
    let heights =
        [Constraint::Length(1), Constraint::Length(1), Constraint::Min(1), Constraint::Length(1)];
    let [top, tabs, body, bottom] = Layout::vertical(heights).areas(frame.area());
    frame.render_widget(Paragraph::new(heading(screen, top.width.into())), top);
    frame.render_widget(Paragraph::new(tab_line(screen.view)), tabs);
    let columns = match screen.view() {
        View::Overview => draw_overview(frame, body, screen),
        View::Slow => draw_slow(frame, body, screen),
        _ => draw_table(frame, body, screen),
    };
    frame.render_widget(Paragraph::new(last_line(screen)), bottom);
    columns
}

/// Returns the first line: the program, and what is special about the screen.
fn heading(screen: &Screen, width: usize) -> Line<'static> {
    let span = screen.span.name();
    let mut state = match (&screen.problem, screen.is_paused) {
        (Some(problem), _) => format!("  NO ANSWER: {problem}"),
        (None, true) => "  PAUSED".to_owned(),
        (None, false) => String::new(),
    };
    if !screen.filter.is_empty() {
        state.push_str(&format!("  filter: {}", screen.filter));
    }
    let text = format!("{}  URLs: {span}{state}", title(&screen.snapshot));
    let text = text.replace(|character: char| character.is_control(), " ");
    Line::from(aligned(&text, width, false)).style(REVERSED)
}

fn tab_line(view: usize) -> Line<'static> {
    let mut spans = Vec::new();
    for (index, tab) in View::ALL.iter().enumerate() {
        let style = if index == view { REVERSED.patch(BOLD) } else { Style::new() };
        spans.push(Span::styled(format!("{}", index + 1), DIM));
        spans.push(Span::styled(format!(" {} ", tab.name()), style));
    }
    Line::from(spans)
}

fn last_line(screen: &Screen) -> Line<'static> {
    if screen.is_typing {
        return Line::from(format!("filter: {}_   Enter: keep   Esc: remove", screen.filter));
    }
    let mut spans = Vec::new();
    for (key, does) in KEYS {
        spans.push(Span::styled(key, BOLD));
        spans.push(Span::styled(format!(" {does}  "), DIM));
    }
    Line::from(spans)
}

/// Draws the rates, the plot of requests, and the table of URLs below.
fn draw_overview(frame: &mut Frame<'_>, area: Rect, screen: &mut Screen) -> Vec<usize> {
    let rates = screen.rates.table();
    let height = rates.rows.len().div_ceil(3) as u16;
    let heights = [
        Constraint::Length(height),
        Constraint::Length(4),
        Constraint::Length(1),
        Constraint::Min(1),
    ];
    let [numbers, plot, _, rest] = Layout::vertical(heights).areas(area);
    let mut lines = vec![Vec::new(); usize::from(height)];
    for (index, row) in rates.rows.iter().enumerate() {
        let line = &mut lines[index % usize::from(height)];
        line.push(Span::styled(format!("{:16}", row[0].text), DIM));
        line.push(Span::styled(format!("{:>7}   ", row[1].text), BOLD));
    }
    let lines: Vec<Line<'_>> = lines.into_iter().map(Line::from).collect();
    frame.render_widget(Paragraph::new(lines), numbers);
    let newest = screen.history.len().saturating_sub(plot.width.into());
    let history: Vec<u64> = screen.history.iter().skip(newest).copied().collect();
    let style = Style::new().fg(Color::Cyan);
    frame.render_widget(Sparkline::default().data(&history).style(style), plot);
    draw_table(frame, rest, screen)
}

/// Draws the slow requests, and below those whole that are cut in the table.
fn draw_slow(frame: &mut Frame<'_>, area: Rect, screen: &mut Screen) -> Vec<usize> {
    let table = screen.table();
    let layout = table.layout(area.width.into());
    let request = table.columns.iter().position(|column| column.name == "request");
    let width = layout.iter().find(|(index, _)| Some(*index) == request).map(|(_, width)| *width);
    let (Some(request), Some(width)) = (request, width) else {
        return draw_table(frame, area, screen);
    };
    let rows = table.rows.iter().skip(screen.scroll);
    let texts = rows.map(|row| row[request].text.as_str());
    let cut: Vec<Line<'_>> =
        texts.filter(|text| text.chars().count() > width).map(Line::from).collect();
    if cut.is_empty() {
        return draw_table(frame, area, screen);
    }
    let height = u16::try_from(table.rows.len() + 1).unwrap_or(u16::MAX);
    let heights = [
        Constraint::Length(height.min(area.height / 2)),
        Constraint::Length(1),
        Constraint::Min(0),
    ];
    let [top, title, below] = Layout::vertical(heights).areas(area);
    let columns = draw_table(frame, top, screen);
    frame.render_widget(Paragraph::new(Line::styled("complete", BOLD)), title);
    // A URL has no spaces, so that it is wrapped at any character.
    let cut = cut.iter().flat_map(|line| pieces(line, below.width.into()));
    frame.render_widget(Paragraph::new(cut.collect::<Vec<_>>()), below);
    columns
}

/// Returns the lines of a text that is wrapped at any character.
fn pieces(line: &Line<'_>, width: usize) -> Vec<Line<'static>> {
    let text: Vec<char> = line.spans.iter().flat_map(|span| span.content.chars()).collect();
    text.chunks(width.max(1)).map(|piece| Line::from(String::from_iter(piece))).collect()
}

/// Draws the table of the view. Returns its columns that are visible.
fn draw_table(frame: &mut Frame<'_>, area: Rect, screen: &mut Screen) -> Vec<usize> {
    let table = screen.table();
    let layout = table.layout(area.width.into());
    let columns: Vec<usize> = layout.iter().map(|(index, _)| *index).collect();
    let visible = usize::from(area.height).saturating_sub(1);
    screen.scroll = screen.scroll.min(table.rows.len().saturating_sub(visible.max(1)));
    let mut lines = vec![headings(&table, &layout, screen.is_reversed())];
    if table.rows.is_empty() {
        lines.push(Line::styled(nothing(screen), DIM));
    }
    for row in table.rows.iter().skip(screen.scroll).take(visible) {
        let cells = layout.iter().map(|(index, width)| {
            aligned(&row[*index].text, *width, table.columns[*index].is_number)
        });
        lines.push(Line::from(cells.collect::<Vec<_>>().join(" ")));
    }
    frame.render_widget(Paragraph::new(lines), area);
    columns
}

fn nothing(screen: &Screen) -> &'static str {
    match screen.view() {
        _ if !screen.filter.is_empty() => "no row has the text of the filter",
        View::Slow => "none; `slow = \"1s\"` of an [[app]] says which requests are slow",
        _ => "none",
    }
}

/// Returns the line of headings. The one by which the rows are ordered stands out.
fn headings(table: &ViewTable, layout: &[(usize, usize)], is_reversed: bool) -> Line<'static> {
    let mut spans = Vec::new();
    for (index, width) in layout {
        let column = table.columns[*index];
        let is_order = table.order == Some(*index);
        let style = if is_order { BOLD.patch(REVERSED) } else { BOLD };
        let name = match (is_order, is_reversed) {
            (true, false) => format!("{}↓", column.name),
            (true, true) => format!("{}↑", column.name),
            (false, _) => column.name.to_owned(),
        };
        let text = format!("{} ", aligned(&name, *width, column.is_number));
        spans.push(Span::styled(text, style));
    }
    Line::from(spans)
}

#[cfg(test)]
#[path = "draw_tests.rs"]
mod tests;
