//! The cost of a configuration grows with its bytes (`kirin-doubling`).

use kirin_doubling::Table;

use crate::testing::{Importer, MemoryFiles};

/// Checks an importer with each piece repeated, between a start and an end.
fn check(
    table: &mut Table,
    name: &str,
    importer: Importer,
    around: &[(&str, &str)],
    pieces: &[&str],
) {
    for piece in pieces {
        for (start, end) in around {
            let text = |count: usize| {
                let text = format!("{start}{}{end}", piece.repeat(count));
                MemoryFiles::new(&[("f", text.as_str())])
            };
            table.check(&format!("{name} {start}{piece}{end}"), 200, text, |files| {
                importer("f", files).is_ok()
            });
        }
    }
}

#[test]
fn a_configuration_of_unit_costs_no_more_than_its_bytes() {
    let mut table = Table::new();
    let pieces = [
        "a",
        "\"",
        "\\\\",
        "[",
        "{\"a\":",
        "1,",
        "\"a\",",
        "/*",
        "// a\n",
        "{\"action\":{\"return\":403}},",
        "{\"match\":{\"uri\":\"/a/*\",\"scheme\":\"http\"},\"action\":{\"share\":\"/a$uri\"}},",
        "{\"match\":{\"uri\":\"~^/a(b)\"},\"action\":{\"share\":\"/a$uri\"}},",
        "{\"match\":{\"host\":\"a\"},\"action\":{\"share\":\"/a$host$uri\"}},",
    ];
    let around = [
        ("", ""),
        (
            "{\"listeners\":{\"*:80\":{\"pass\":\"routes\"}},\"routes\":[",
            "{\"action\":{\"return\":404}}]}",
        ),
        ("{\"listeners\":{\"*:80\":{\"pass\":\"", "\"}}}"),
    ];
    check(&mut table, "unit", crate::unit::import, &around, &pieces);
    table.finish();
}

#[test]
fn a_configuration_of_uwsgi_costs_no_more_than_its_bytes() {
    let mut table = Table::new();
    let pieces = [
        "a",
        "%",
        "%(a)",
        "%(",
        "[",
        "=",
        "\n",
        "a=b\n",
        "http = :80\n",
        "env = A=b\n",
        "psgi = app.psgi\n",
        "static-map = /a=/b/a\n",
        "static-map = /a=/b\n",
        "route = ^/a/(b|c) basicauth:a,b:c\n",
        "mount = /a=a.psgi\n",
        "static-skip-ext = .a\n",
        "if-env = A\n",
        "log-format = %(method)\n",
        "end\n",
    ];
    let around = [("", ""), ("[uwsgi]\n", "\n"), ("[uwsgi]\npsgi = a.psgi\nroute = ^/", "\n")];
    check(&mut table, "uwsgi", crate::uwsgi::import, &around, &pieces);
    table.finish();
}
