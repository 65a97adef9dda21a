//! Every parser of this crate costs no more than its input (`kirin-doubling`).

use kirin_doubling::Table;

use crate::filters::push::dictionary;
use crate::purge::command::Purge;

#[test]
fn structured_fields_cost_no_more_than_their_bytes() {
    let mut table = Table::new();
    let different =
        |count: usize| (0..count).map(|number| format!("a{number}=1, ")).collect::<String>() + "a";
    table.check("members", 300, different, |value| dictionary::parse(value.as_bytes()).is_ok());
    for piece in ["a=1, ", "a=\"b\", ", "a,", " ", "a=\"", "\\\"", "a", "1"] {
        let value = |count: usize| piece.repeat(count);
        table.check(&format!("dictionary {piece}"), 300, value, |value| {
            dictionary::parse(value.as_bytes())
        });
        let tags = |count: usize| format!("tags=\"{}\"", piece.replace('"', "x").repeat(count));
        table.check(&format!("tags {piece}"), 300, tags, |value| {
            Purge::parse(value.as_bytes()).is_ok()
        });
        let keys = |count: usize| format!("keys=\"{}\"", "/a ".repeat(count));
        table.check("keys", 300, keys, |value| Purge::parse(value.as_bytes()).is_ok());
    }
    table.finish();
}
