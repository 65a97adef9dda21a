//! The cost of a command grows with its bytes and not with their square (`kirin-doubling`).

use kirin_doubling::Table;
use kirin_memcache::codec::{CodecLimits, Keys, ParsedInput, parse};

#[test]
fn commands_cost_no_more_than_their_bytes() {
    let limits = CodecLimits::default();
    let mut table = Table::new();
    for (start, piece) in [
        ("get ", "a "),
        ("gets ", " "),
        ("gat 1 ", "key "),
        ("get ", "a"),
        ("mg k ", "v "),
        ("mn ", "O1 "),
        ("set k ", "0 "),
        ("", " "),
        ("x", "y "),
    ] {
        let line = |count: usize| format!("{start}{}\r\n", piece.repeat(count));
        table.check(&format!("{start}{piece}"), 100, line, |line| {
            let command = matches!(parse(line.as_bytes(), &limits), ParsedInput::Command { .. });
            (command, Keys::split(line.as_bytes()).count())
        });
    }
    table.finish();
}
