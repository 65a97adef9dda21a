//! touch.lua.

use crate::engine::{Engine, ITEM, TAG, TEN_MINUTES, TOMBSTONE, UNREADABLE, assert_ttl, item};

fn with_item(marks: u8) -> Engine {
    let engine = Engine::with_number(50);
    engine.query::<()>(&[b"SET", ITEM.as_bytes(), &item(marks, 40, 90, 0, b"value")]);
    engine
}

#[test]
fn a_touch_changes_only_when_the_item_expires() {
    let engine = with_item(0);
    assert_eq!(engine.touch(90, 60_000, &[]), 1);
    assert_ttl(engine.ttl(ITEM), 60_000);
    assert_eq!(engine.touch(90, 0, &[]), 1);
    assert_eq!(engine.ttl(ITEM), -1);
    let found: Vec<u8> = engine.query(&[b"GET", ITEM.as_bytes()]);
    assert_eq!(found, item(0, 40, 90, 0, b"value"));
}

#[test]
fn a_touch_needs_the_version_expected() {
    let engine = with_item(0);
    assert_eq!(engine.touch(91, 60_000, &[]), 0);
    assert_eq!(engine.touch(0, 60_000, &[]), 0);
    assert_eq!(engine.ttl(ITEM), -1);
}

#[test]
fn neither_a_tombstone_nor_an_unreadable_value_is_touched() {
    let engine = with_item(TOMBSTONE);
    assert_eq!(engine.touch(90, 60_000, &[]), 0);
    engine.run(&["DEL", ITEM]);
    assert_eq!(engine.touch(0, 60_000, &[]), 0);
    engine.run(&["SET", ITEM, "text"]);
    assert_eq!(engine.touch(UNREADABLE, 60_000, &[]), 0);
    engine.run(&["DEL", ITEM]);
    engine.run(&["RPUSH", ITEM, "a"]);
    assert_eq!(engine.touch(UNREADABLE, 60_000, &[]), 0);
    assert_eq!(engine.ttl(ITEM), -1);
}

#[test]
fn the_tags_of_a_touched_item_outlive_it() {
    let engine = with_item(0);
    engine.run(&["SET", TAG, "7:8", "PX", "1000000"]);
    assert_eq!(engine.touch(90, 60_000, &[TAG, "kt:none"]), 1);
    assert_ttl(engine.ttl(TAG), 1_000_000);
    assert_eq!(engine.touch(90, 3_600_000, &[TAG, "kt:none"]), 1);
    assert_ttl(engine.ttl(TAG), 2 * (3_600_000 + TEN_MINUTES));
    assert_eq!(engine.touch(90, 0, &[TAG, "kt:none"]), 1);
    assert_eq!(engine.ttl(TAG), -1);
    assert_eq!(engine.run(&["GET", TAG]), "7:8");
    assert!(!engine.has("kt:none"));
}
