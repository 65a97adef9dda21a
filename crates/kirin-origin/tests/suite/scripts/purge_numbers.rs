//! purge_numbers.lua.

use crate::engine::{Engine, NUMBER, PURGES, note_purge_over, now};

fn note(engine: &Engine, number: u64, prefixes: &[&str]) -> (u64, u64) {
    let mut connection = engine.connection.clone();
    let noted = engine.wait(note_purge_over(&mut connection, number, prefixes));
    noted.expect("purge_numbers.lua runs")
}

#[test]
fn a_greater_number_is_noted_with_the_prefixes() {
    let engine = Engine::with_number(50);
    assert_eq!(note(&engine, 60, &[]), (1, 60));
    assert_eq!(engine.run(&["GET", NUMBER]), "60:0");
    assert_eq!(note(&engine, 70, &["a"]), (1, 70));
    assert_eq!(engine.run(&["GET", NUMBER]), "70:70");
    assert_eq!(engine.run(&["HGET", PURGES, "a"]), "70:0");
}

#[test]
fn a_number_that_somebody_may_have_read_is_not_noted() {
    let engine = Engine::with_number(50);
    for number in [40, 50] {
        let begun = now();
        let (is_done, next) = note(&engine, number, &["a"]);
        assert!(is_done == 0 && next >= begun, "{is_done} {next}");
    }
    assert_eq!(engine.run(&["GET", NUMBER]), "50:0");
    assert_eq!(engine.run(&["HEXISTS", PURGES, "a"]), "0");
}

#[test]
fn lost_numbers_begin_at_the_number_of_the_purge() {
    let engine = Engine::start();
    assert_eq!(note(&engine, 60, &[]), (1, 60));
    assert_eq!(engine.run(&["GET", NUMBER]), "60:60");
    assert_eq!(engine.run(&["HGET", PURGES, ""]), "60:0");
}
