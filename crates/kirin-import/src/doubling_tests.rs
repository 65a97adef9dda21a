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
