//! Tests of the screen, on a terminal in memory.

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::*;
use crate::top::sample::snapshot;

/// Returns the lines of a terminal of this size.
fn lines(screen: &mut Screen, width: u16, height: u16) -> (Vec<String>, Vec<usize>) {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    let mut columns = Vec::new();
    terminal.draw(|frame| columns = draw(frame, screen)).unwrap();
    let buffer = terminal.backend().buffer();
    let line = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
    ((0..height).map(|y| line(y).trim_end().to_owned()).collect(), columns)
}

fn press(screen: &mut Screen, keys: &[KeyCode]) -> bool {
    let (_, columns) = lines(screen, 80, 24);
    keys.iter().all(|key| screen.press(KeyEvent::new(*key, KeyModifiers::NONE), &columns))
}

fn typed(text: &str) -> Vec<KeyCode> {
    text.chars().map(KeyCode::Char).collect()
}

#[test]
fn each_view_fits_into_80_columns_and_24_lines() {
    for (view, expected) in [
        (0, "requests/s           12"),
        (1, "102 busy  1.5s"),
        (2, "GET /memo/{id}"),
        (3, "web ready"),
        (4, "10.0.0.1:80"),
        (5, "stale hits"),
        (6, "gets that hit"),
        (7, "Memo::slow lib/Memo.pm:42"),
    ] {
        let mut screen = Screen::new(snapshot());
        screen.view = view;
        let (lines, _) = lines(&mut screen, 80, 24);
        assert!(
            lines.iter().any(|line| line.contains(expected)),
            "{expected}\n{}",
            lines.join("\n")
        );
        assert!(lines[0].starts_with("kirin 0.1.0  pid 100  up 1h01m"), "{}", lines[0]);
        assert!(lines[1].ends_with("8 slow"), "{}", lines[1]);
        assert!(lines[23].ends_with("↑↓ scroll"), "{}", lines[23]);
    }
}

#[test]
fn no_size_of_a_terminal_is_too_small() {
    for (width, height) in [(1, 1), (5, 3), (20, 6), (300, 100)] {
        for view in 0..View::ALL.len() {
            let mut screen = Screen::new(snapshot());
            screen.view = view;
            lines(&mut screen, width, height);
        }
    }
}

#[test]
fn keys_sort_reverse_and_filter() {
    let mut screen = Screen::new(snapshot());
    let first_row = |screen: &mut Screen| {
        let (lines, _) = lines(screen, 80, 24);
        (lines[2].clone(), lines[3].split_whitespace().last().unwrap_or_default().to_owned())
    };
    press(&mut screen, &[KeyCode::Char('3')]);
    let (headings, url) = first_row(&mut screen);
    assert!(headings.contains("sum↓") && url == "/memo/{id}", "{headings} {url}");
    press(&mut screen, &[KeyCode::Right]);
    let (headings, url) = first_row(&mut screen);
    assert!(headings.contains("count↓") && url.contains("script"), "{headings} {url}");
    press(&mut screen, &[KeyCode::Char('r')]);
    let (headings, url) = first_row(&mut screen);
    assert!(headings.contains("count↑") && url == "/memo/{id}", "{headings} {url}");
    press(&mut screen, &[KeyCode::Char('/')]);
    press(&mut screen, &typed("SCRIPTx"));
    press(&mut screen, &[KeyCode::Backspace, KeyCode::Enter]);
    let (_, url) = first_row(&mut screen);
    assert!(url.contains("script"), "{url}");
    press(&mut screen, &[KeyCode::Esc]);
    assert_eq!(screen.table().rows.len(), 2);
}

#[test]
fn a_paused_screen_does_not_change() {
    let mut screen = Screen::new(snapshot());
    press(&mut screen, &[KeyCode::Char(' ')]);
    let mut later = snapshot();
    later.uptime_ms += 3_600_000;
    screen.update(Ok(later.clone()));
    assert!(lines(&mut screen, 80, 24).0[0].contains("up 1h01m  URLs: last minute  PAUSED"));
    press(&mut screen, &[KeyCode::Char(' ')]);
    screen.update(Ok(later));
    assert!(lines(&mut screen, 80, 24).0[0].contains("up 2h01m"));
}

#[test]
fn a_problem_is_shown_until_it_is_over() {
    let mut screen = Screen::new(snapshot());
    screen.update(Err("nobody\nlistens".into()));
    assert!(lines(&mut screen, 80, 24).0[0].contains("NO ANSWER: nobody listens"));
    screen.update(Ok(snapshot()));
    assert!(!lines(&mut screen, 80, 24).0[0].contains("NO ANSWER"));
}

#[test]
fn q_and_control_c_end_the_program() {
    let mut screen = Screen::new(snapshot());
    assert!(!press(&mut screen, &[KeyCode::Char('q')]));
    let control_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert!(!screen.press(control_c, &[]));
    // In a filter, q is a letter.
    assert!(press(&mut screen, &[KeyCode::Char('/'), KeyCode::Char('q')]));
    assert!(!screen.press(control_c, &[]));
}

#[test]
fn a_slow_request_that_is_cut_is_complete_below_the_table() {
    let mut snapshot = snapshot();
    let query = format!("q={}&end=here", "0123456789".repeat(20));
    snapshot.status["apps"][0]["slow_requests"][0]["query"] = query.clone().into();
    let mut screen = Screen::new(snapshot);
    screen.view = 7;
    let (rows, _) = lines(&mut screen, 80, 24);
    let text = rows.join("\n");
    assert!(text.contains("GET /slow?q=01") && text.contains("Memo::slow lib/Memo.pm"), "{text}");
    let whole = rows[3..].join("");
    assert!(whole.contains(&format!("GET /slow?{query}")), "{text}");
    for (width, height) in [(1, 1), (5, 3), (20, 6), (300, 100)] {
        lines(&mut screen, width, height);
    }
}
