//! The state of the screen: the snapshots that came, and what the keys have chosen.

use std::collections::VecDeque;

use kirin_observe::live::rates::Rates;
use kirin_observe::live::snapshot::Snapshot;
use kirin_observe::live::table::ViewTable;
use kirin_observe::live::views::{self, Span};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// The rates that are kept for the plot.
const MAX_HISTORY: usize = 300;

/// A view: what fills the screen below the tabs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// The rates, their plot, and the URLs.
    Overview,
    /// The workers.
    Workers,
    /// The URLs.
    Urls,
    /// The applications.
    Apps,
    /// The servers of upstreams.
    Upstreams,
    /// The counters of caches.
    Cache,
    /// The numbers of the store.
    Store,
    /// The last slow requests.
    Slow,
}

impl View {
    /// All views, in the order of their tabs.
    pub const ALL: [Self; 8] = [
        Self::Overview,
        Self::Workers,
        Self::Urls,
        Self::Apps,
        Self::Upstreams,
        Self::Cache,
        Self::Store,
        Self::Slow,
    ];

    /// Returns the name on the tab.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Overview => "overview",
            Self::Workers => "workers",
            Self::Urls => "URLs",
            Self::Apps => "apps",
            Self::Upstreams => "upstreams",
            Self::Cache => "cache",
            Self::Store => "store",
            Self::Slow => "slow",
        }
    }
}

/// The order of the rows of a view.
#[derive(Clone, Copy, Debug, Default)]
pub struct RowOrder {
    /// The column that a key has chosen.
    pub column: Option<usize>,
    /// Whether the order is the other way round.
    pub is_reversed: bool,
}

/// The state of the screen.
pub struct Screen {
    /// The index of the view.
    pub view: usize,
    orders: [RowOrder; View::ALL.len()],
    /// The text that rows must have.
    pub filter: String,
    /// Whether keys are added to the filter.
    pub is_typing: bool,
    /// Whether new snapshots are not shown.
    pub is_paused: bool,
    /// The time that the numbers of URLs are about.
    pub span: Span,
    /// The rows that are scrolled away.
    pub scroll: usize,
    /// The snapshot that is shown.
    pub snapshot: Snapshot,
    /// Its rates.
    pub rates: Rates,
    /// The requests a second so far, the newest last.
    pub history: VecDeque<u64>,
    /// Why there is no newer snapshot.
    pub problem: Option<String>,
}

impl Screen {
    /// Returns the screen that shows a first snapshot.
    pub fn new(snapshot: Snapshot) -> Self {
        Self {
            view: 0,
            orders: [RowOrder::default(); View::ALL.len()],
            filter: String::new(),
            is_typing: false,
            is_paused: false,
            span: Span::default(),
            scroll: 0,
            rates: Rates::between(None, &snapshot),
            snapshot,
            history: VecDeque::new(),
            problem: None,
        }
    }

    /// Shows a newer snapshot, unless the screen is paused.
    pub fn update(&mut self, snapshot: Result<Snapshot, String>) {
        match snapshot {
            Ok(_) if self.is_paused => {}
            Ok(snapshot) => {
                self.problem = None;
                self.rates = Rates::between(Some(&self.snapshot), &snapshot);
                self.snapshot = snapshot;
                if self.history.len() == MAX_HISTORY {
                    self.history.pop_front();
                }
                self.history.push_back(self.rates.requests.round() as u64);
            }
            Err(problem) => self.problem = Some(problem),
        }
    }

    /// Returns the view.
    pub fn view(&self) -> View {
        View::ALL[self.view]
    }

    /// Returns the table of the view, ordered and filtered.
    pub fn table(&self) -> ViewTable {
        let mut table = match self.view() {
            View::Overview | View::Urls => views::urls(&self.snapshot, self.span),
            View::Workers => views::workers(&self.snapshot),
            View::Apps => views::apps(&self.snapshot),
            View::Upstreams => views::upstreams(&self.snapshot),
            View::Cache => views::cache(&self.snapshot),
            View::Store => views::store(&self.snapshot),
            View::Slow => views::slow(&self.snapshot),
        };
        if !self.filter.is_empty() {
            table.filter(&self.filter);
        }
        let order = self.orders[self.view];
        table.order = order.column.or(table.order);
        if let Some(column) = table.order {
            table.sort(column, order.is_reversed);
        }
        table
    }

    /// Returns whether the order of the rows is the other way round.
    pub fn is_reversed(&self) -> bool {
        self.orders[self.view].is_reversed
    }

    /// Handles a key. Returns false if the program must end. `columns` are the columns of the table
    /// that are visible.
    pub fn press(&mut self, key: KeyEvent, columns: &[usize]) -> bool {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        if is_control && key.code == KeyCode::Char('c') {
            return false;
        }
        if self.is_typing {
            self.type_filter(key.code);
            return true;
        }
        match key.code {
            KeyCode::Char('q') => return false,
            KeyCode::Tab => self.show((self.view + 1) % View::ALL.len()),
            KeyCode::BackTab => self.show((self.view + View::ALL.len() - 1) % View::ALL.len()),
            KeyCode::Char(digit @ '1'..='8') => self.show(digit as usize - '1' as usize),
            KeyCode::Right | KeyCode::Char('>') => self.move_order(columns, 1),
            KeyCode::Left | KeyCode::Char('<') => {
                self.move_order(columns, columns.len().max(1) - 1)
            }
            KeyCode::Char('r') => self.orders[self.view].is_reversed ^= true,
            KeyCode::Char('/') => self.is_typing = true,
            KeyCode::Esc => self.filter.clear(),
            KeyCode::Char(' ' | 'p') => self.is_paused ^= true,
            KeyCode::Char('w') => {
                self.span = match self.span {
                    Span::LastMinute => Span::SinceStart,
                    Span::SinceStart => Span::LastMinute,
                }
            }
            KeyCode::Down | KeyCode::Char('j') => self.scroll += 1,
            KeyCode::Up | KeyCode::Char('k') => self.scroll = self.scroll.saturating_sub(1),
            KeyCode::PageDown => self.scroll += 10,
            KeyCode::PageUp => self.scroll = self.scroll.saturating_sub(10),
            KeyCode::Home => self.scroll = 0,
            _ => {}
        }
        true
    }

    fn type_filter(&mut self, key: KeyCode) {
        match key {
            KeyCode::Enter => self.is_typing = false,
            KeyCode::Esc => {
                self.is_typing = false;
                self.filter.clear();
            }
            KeyCode::Backspace => _ = self.filter.pop(),
            KeyCode::Char(character) => self.filter.push(character),
            _ => {}
        }
        self.scroll = 0;
    }

    fn show(&mut self, view: usize) {
        self.view = view;
        self.scroll = 0;
    }

    /// Orders the rows by another visible column, so many to the right.
    fn move_order(&mut self, columns: &[usize], distance: usize) {
        let present = self.table().order;
        let position = columns.iter().position(|column| Some(*column) == present);
        let next = position.map_or(0, |position| (position + distance) % columns.len());
        self.orders[self.view] =
            RowOrder { column: columns.get(next).copied(), is_reversed: false };
        self.scroll = 0;
    }
}
