//! put.lua: the tags of an item.

use crate::engine::{Engine, ITEM, Put, TAG, TEN_MINUTES, assert_ttl, item};

/// Returns a write with one tag.
fn tagged(condition: &str, made: Option<u64>) -> Put<'_> {
    Put { condition, made, tags: &[TAG], ..Put::default() }
}

#[test]
fn an_absent_tag_is_created_as_never_purged() {
    let engine = Engine::with_number(50);
    assert_eq!(engine.put(&tagged("page", Some(40))), (1, 50, 100));
    assert_eq!(engine.run(&["GET", TAG]), "0:0");
    assert_eq!(engine.ttl(TAG), -1, "the item never expires");
}

#[test]
fn an_absent_tag_of_an_engine_that_evicts_is_created_with_the_number() {
    let engine = Engine::with_number(50);
    let put = |made| Put { evicts: true, ..tagged("page", Some(made)) };
    assert_eq!(engine.put(&put(49)), (2, 50, 0), "the new tag would kill the page");
    assert!(!engine.has(TAG) && !engine.has(ITEM));
    assert_eq!(engine.put(&put(50)), (1, 50, 100));
    assert_eq!(engine.run(&["GET", TAG]), "50:0");
}

#[test]
fn an_unreadable_tag_was_never_purged_but_becomes_so() {
    let engine = Engine::with_number(50);
    for words in [["SET", TAG, "text"].as_slice(), &["SET", TAG, "1:-2"], &["RPUSH", TAG, "a"]] {
        engine.run(&["DEL", TAG, ITEM]);
        engine.run(words);
        assert_eq!(engine.put(&tagged("page", Some(49))), (2, 50, 0), "{words:?}");
        assert_eq!(engine.put(&tagged("any", None)), (1, 50, 100), "{words:?}");
        assert_eq!(engine.run(&["GET", TAG]), "50:0", "{words:?}");
    }
}

#[test]
fn a_purged_tag_refuses_what_was_made_before() {
    let engine = Engine::with_number(50);
    engine.run(&["SET", TAG, "45:0"]);
    engine.run(&["SET", "kt:other", "0:0"]);
    for tags in [&[TAG, "kt:other"], &["kt:other", TAG]] {
        for condition in ["page", "version"] {
            let put = Put { tags, ..tagged(condition, Some(44)) };
            assert_eq!(engine.put(&put), (2, 50, 0), "{condition}");
        }
    }
    assert_eq!(engine.put(&tagged("page", Some(45))), (1, 50, 100));
    assert_eq!(engine.run(&["GET", TAG]), "45:0", "it is kept");
}

#[test]
fn a_soft_purge_refuses_a_write_with_a_condition() {
    let engine = Engine::with_number(50);
    engine.run(&["SET", TAG, "0:45"]);
    assert_eq!(engine.put(&tagged("version", Some(44))), (2, 50, 0));
    assert_eq!(engine.put(&tagged("page", Some(44))), (2, 50, 0));
    assert_eq!(engine.put(&tagged("any", None)), (1, 50, 100));
}

#[test]
fn a_changed_item_is_reported_before_a_purged_tag() {
    let engine = Engine::with_number(50);
    engine.query::<()>(&[b"SET", ITEM.as_bytes(), &item(0, 48, 90, 0, b"")]);
    engine.run(&["SET", TAG, "45:0"]);
    assert_eq!(engine.put(&tagged("page", Some(44))), (0, 50, 90));
    assert_eq!(engine.put(&tagged("version", Some(44))), (0, 50, 90));
}

#[test]
fn an_unconditional_write_is_refused_by_a_tag_of_the_future() {
    let engine = Engine::with_number(50);
    engine.run(&["SET", TAG, "51:0"]);
    assert_eq!(engine.put(&tagged("any", None)), (2, 50, 0));
}

#[test]
fn a_tag_outlives_its_items_by_ten_minutes() {
    let engine = Engine::with_number(50);
    let mut version = 100;
    let mut put = |ttl| {
        version += 1;
        let put = Put { ttl, item: item(0, 0, version, 0, b""), ..tagged("any", None) };
        assert_eq!(engine.put(&put).0, 1);
        engine.ttl(TAG)
    };
    let long = |ttl| 2 * (ttl + TEN_MINUTES);
    assert_ttl(put(60_000), long(60_000));
    assert_ttl(put(30_000), long(60_000));
    engine.run(&["PEXPIRE", TAG, "670000"]);
    assert_ttl(put(60_000), 670_000);
    engine.run(&["PEXPIRE", TAG, "650000"]);
    assert_ttl(put(60_000), long(60_000));
    assert_ttl(put(3_600_000), long(3_600_000));
    assert_eq!(put(0), -1, "an item without a TTL");
    assert_eq!(put(60_000), -1, "which may still be there");
}
