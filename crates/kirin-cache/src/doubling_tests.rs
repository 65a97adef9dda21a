//! The cost of each parser of this crate grows with its input (`kirin-doubling`).

use httparse::Header;
use kirin_doubling::Table;
use kirin_http::FieldLines;

use crate::cache_control::{RequestDirectives, ResponseDirectives};
use crate::directives::directives;
use crate::storable::unstored_fields;
use crate::vary::{Vary, append_secondary_key};
use crate::{key, validation};

#[test]
fn directives_cost_no_more_than_their_bytes() {
    let mut table = Table::new();
    for piece in [
        "a,",
        ",",
        "a=\"",
        "a=\"\\\",",
        "=\"\\",
        "max-age=1, ",
        "private=\"a,b\",",
        "no-cache=\"",
        "no-cache=a,",
        " ",
        "=",
        "a =",
        "\\\"",
    ] {
        let text = |count: usize| piece.repeat(count).into_bytes();
        table.check(&format!("list {piece}"), 300, text, |list| directives(list).count());
        table
            .check(&format!("response {piece}"), 300, text, |list| ResponseDirectives::parse(list));
        table.check(&format!("request {piece}"), 300, text, |value| {
            RequestDirectives::from_fields(&[Header { name: "cache-control", value }])
        });
        let quoted = |count: usize| [&b"private=\""[..], &text(count), b"\""].concat();
        table.check(&format!("private {piece}"), 300, quoted, |list| {
            let mut fields = FieldLines::new();
            let _ = fields.try_push(b"Cache-Control", list);
            unstored_fields(&fields).len()
        });
    }
    table.finish();
}

#[test]
fn keys_cost_no_more_than_their_bytes() {
    let mut table = Table::new();
    for piece in ["a,", ",", "Accept, ", "cookie,", " "] {
        let fields = |count: usize| {
            let mut fields = FieldLines::new();
            fields.push("Vary", piece.repeat(count));
            fields
        };
        table.check(&format!("vary {piece}"), 300, fields, Vary::from_fields);
    }
    for name in ["accept-encoding", "accept", "cookie"] {
        for piece in ["a,", ", ", "gzip;q=1.0, ", ";q=1", " "] {
            let names = [name.to_owned()];
            table.check(
                &format!("{name} {piece}"),
                300,
                |count| piece.repeat(count),
                |value| {
                    let fields = [Header { name, value: value.as_bytes() }];
                    let mut key = Vec::new();
                    append_secondary_key(&names, &fields, &mut key);
                    key
                },
            );
            table.check(
                &format!("{name} {piece} in lines"),
                12,
                |count| count,
                |count| {
                    let fields = vec![Header { name, value: piece.as_bytes() }; *count];
                    let mut key = Vec::new();
                    append_secondary_key(&names, &fields, &mut key);
                    key
                },
            );
        }
    }
    let ignored = ["utm_*".to_owned(), "x".to_owned()];
    for piece in ["a=b&", "&", "utm_a=1&", "=", "x"] {
        table.check(
            &format!("query {piece}"),
            300,
            |count| piece.repeat(count),
            |query| key::without_arguments(query, &ignored),
        );
    }
    assert!(!validation::CONDITIONS.is_empty());
    table.finish();
}
