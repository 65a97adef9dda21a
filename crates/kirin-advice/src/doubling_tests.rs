//! What visitors and applications send costs no more than its bytes (`kirin-doubling`).

use std::hash::RandomState;

use kirin_doubling::Table;

use crate::gaps::compare;
use crate::own_values::OwnValues;
use crate::pieces::{HashedPiece, Splitter};

fn pieces(key: &RandomState, body: &str) -> Vec<HashedPiece> {
    let mut splitter = Splitter::new(key.clone());
    splitter.add(body.as_bytes());
    splitter.finish().pieces.map(|pieces| pieces.to_vec()).unwrap_or_default()
}

#[test]
fn bodies_cost_no_more_than_their_bytes() {
    let key = RandomState::new();
    let mut table = Table::new();
    for piece in ["a", ",", "ab,", "\n", "<b>x</b>\n", "aaaaaaaaaaaaaaaa"] {
        let body = |count: usize| piece.repeat(count);
        table.check(&format!("pieces {piece:?}"), 1500, body, |body| pieces(&key, body).len());
        let values = ["aaaaaab", "<b>x</c", "\n\n\n\n\n\nx"];
        table.check(&format!("own values {piece:?}"), 1500, body, |body| {
            let mut own = OwnValues::new(values.iter().map(|value| value.as_bytes()));
            body.as_bytes().chunks(7).for_each(|chunk| own.search(chunk));
            own.is_found()
        });
    }
    table.finish();
}

/// Makes two bodies with so many pieces.
type Shape<'a> = &'a dyn Fn(usize) -> (String, String);

#[test]
fn comparisons_cost_no_more_than_their_pieces() {
    let key = RandomState::new();
    let numbers = |count: usize, from: usize| -> String {
        (0..count).map(|number| format!("{},", number * 7 % count + from)).collect()
    };
    let mut table = Table::new();
    // Shapes: the same, nothing in common, repeated, in another order, reversed.
    let shapes: [(&str, Shape); 5] = [
        ("same", &|count| (numbers(count, 0), numbers(count, 0))),
        ("other", &|count| (numbers(count, 0), numbers(count, 1_000_000))),
        ("repeated", &|count| ("a,b,".repeat(count / 2), "b,a,a,".repeat(count / 3))),
        ("shifted", &|count| (numbers(count, 0), numbers(count, count / 2))),
        ("reversed", &|count| {
            let forward: String = (0..count).map(|number| format!("{number},")).collect();
            let backward: String = (0..count).rev().map(|number| format!("{number},")).collect();
            (forward, backward)
        }),
    ];
    for (name, shape) in shapes {
        let input = |count: usize| {
            let (one, other) = shape(count);
            (pieces(&key, &one), pieces(&key, &other))
        };
        table.check(name, 500, input, |(one, other)| compare(&[one, other, one]).common_bytes);
    }
    table.finish();
}

#[test]
fn cookies_cost_no_more_than_their_bytes() {
    let mut table = Table::new();
    for piece in ["a", "abcdefgh.", ".", "1/", "/", "%41"] {
        let text = |count: usize| piece.repeat(count);
        table.check(&format!("values {piece}"), 300, text, |text| {
            OwnValues::new(std::iter::once(text.as_bytes())).is_found()
        });
    }
    table.finish();
}
