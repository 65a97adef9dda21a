//! The cost of a file of a project grows with its size (`kirin-doubling`).

use kirin_doubling::Table;

use crate::command_port::{default_port, named_port, with_port};
use crate::container::{exposed, published};
use crate::evidence::printable;
use crate::project::Text;

#[test]
fn a_file_costs_no_more_than_its_bytes() {
    let mut table = Table::new();
    for piece in ["-p ", "x ", "x", ":", "$PORT", "${PORT", "=", "\n", "- 1:2\n", "ENV PORT ", "\""]
    {
        let text = |count: usize| piece.repeat(count);
        table.check(&format!("command {piece:?}"), 300, text, |text| {
            (named_port(text), default_port(text), with_port(text, 1))
        });
        let file = |count: usize| Text { text: format!("ports:\n{}", piece.repeat(count)) };
        table.check(&format!("dockerfile {piece:?}"), 300, file, exposed);
        table.check(&format!("compose {piece:?}"), 300, file, published);
        table.check(&format!("shown {piece:?}"), 300, text, |text| printable(text));
    }
    table.finish();
}
