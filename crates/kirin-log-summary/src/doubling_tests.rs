//! The cost of a line grows with its bytes (`kirin-doubling`).

use kirin_doubling::Table;

use crate::line::{LineFormat, TimeUnit};

#[test]
fn a_line_costs_no_more_than_its_bytes() {
    let mut table = Table::new();
    let pieces = [
        "a",
        "\"",
        "\\",
        "\\\"",
        "\\\\",
        " ",
        "- ",
        "0.1 ",
        "\" \"",
        "[",
        "]",
        "] [",
        "\t",
        "a:\t",
        "uri:/\t",
        "status:1\t",
        "reqtime:1\t",
        ":",
        "1",
        "0.",
        "{",
        "\"uri\":\"/\",",
        "\"a\":[",
        "\"a\":{\"b\":1},",
        "\\u0041",
        "\"request\":{",
        "\"status\":1,",
        "HTTP/",
        " HTTP/1.1",
        "\\x22",
        ", ",
        " : ",
        "- \"",
    ];
    let starts = [
        "",
        "h - - [1] \"GET ",
        "h - - [1] \"GET / HTTP/1.1\" 200 1 ",
        "{",
        "{\"uri\":\"",
        "a:b\t",
    ];
    let template = |format| LineFormat::from_text(format).expect(format);
    for piece in pieces {
        for start in starts {
            let line = |count: usize| format!("{start}{}", piece.repeat(count)).into_bytes();
            for format in [
                LineFormat::Combined,
                LineFormat::Ltsv,
                LineFormat::Json,
                template("%h %t %r %s %D"),
                template("%s \"%{A}i\" %U"),
                template("$uri \"$a\" $upstream_addr $time_local $status $upstream_addr"),
                template("$upstream_addr $time_local \"$request\" $status"),
                LineFormat::Terminal,
            ] {
                table.check(&format!("{format:?} {start}{piece}"), 300, line, |line| {
                    format.parse(line, TimeUnit::Seconds).is_ok()
                });
            }
        }
    }
    table.finish();
}
