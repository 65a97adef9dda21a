//! put.lua: the numbers, the conditions, and what is written.

use crate::engine::{
    Engine, Head, ITEM, NUMBER, PURGES, Put, TOMBSTONE, UNREADABLE, assert_ttl, item, now,
};

/// Returns a page that was begun at `version`, under the number `made`.
fn page(version: u64, made: u64) -> Put<'static> {
    Put { condition: "page", expected: version, made: Some(made), ..Put::default() }
}

/// Returns a write on the condition that `version` is there.
fn at_version(version: u64, made: u64) -> Put<'static> {
    Put { condition: "version", expected: version, made: Some(made), ..Put::default() }
}

#[test]
fn an_unconditional_write_is_made_under_the_present_number() {
    let engine = Engine::with_number(50);
    assert_eq!(engine.put(&Put::default()), (1, 50, 100));
    assert_eq!(engine.head(ITEM), Head { marks: 0, made: 50, version: 100, cas: 0 });
    let found: Vec<u8> = engine.query(&[b"GET", ITEM.as_bytes()]);
    assert_eq!(found, item(0, 50, 100, 0, b"value"), "only the number changes");
    assert_eq!(engine.ttl(ITEM), -1);
    assert_eq!(engine.run(&["GET", NUMBER]), "50:0", "a write is no purge");
}

#[test]
fn an_item_expires_after_its_own_ttl() {
    let engine = Engine::with_number(50);
    engine.put(&Put { ttl: 90_000, ..Put::default() });
    assert_ttl(engine.ttl(ITEM), 90_000);
    engine.put(&Put { item: item(0, 0, 101, 0, b""), ..Put::default() });
    assert_eq!(engine.ttl(ITEM), -1, "a later write without a TTL takes it away");
}

#[test]
fn a_version_must_be_greater_than_the_one_there() {
    let engine = Engine::with_number(50);
    engine.put(&Put::default());
    for condition in [Put::default(), at_version(100, 50), page(100, 50)] {
        assert_eq!(engine.put(&condition), (3, 50, 100), "{}", condition.condition);
    }
    let next = Put { item: item(0, 0, 101, 0, b""), ..Put::default() };
    assert_eq!(engine.put(&next), (1, 50, 101));
}

#[test]
fn a_write_at_a_version_needs_just_that_version() {
    let engine = Engine::with_number(50);
    assert_eq!(engine.put(&at_version(99, 50)), (0, 50, 0));
    assert_eq!(engine.put(&at_version(0, 50)), (1, 50, 100), "0: nothing is there");
    let next = |expected| Put { item: item(0, 50, 200, 0, b""), ..at_version(expected, 50) };
    assert_eq!(engine.put(&next(0)), (0, 50, 100));
    assert_eq!(engine.put(&next(99)), (0, 50, 100));
    assert_eq!(engine.put(&next(100)), (1, 50, 200));
}

#[test]
fn a_tombstone_counts_with_its_version() {
    let engine = Engine::with_number(50);
    engine.query::<()>(&[b"SET", ITEM.as_bytes(), &item(TOMBSTONE, 40, 90, 0, b"")]);
    assert_eq!(engine.put(&at_version(0, 50)), (0, 50, 90));
    assert_eq!(engine.put(&at_version(90, 50)), (1, 50, 100));
}

#[test]
fn a_write_at_a_version_must_know_all_purges_of_prefixes() {
    let engine = Engine::start();
    engine.set_number("50:45", "0:0");
    assert_eq!(engine.put(&at_version(0, 44)), (2, 50, 0));
    assert_eq!(engine.put(&page(0, 44)), (1, 50, 100), "readers judge a page by its prefixes");
    let next = Put { item: item(0, 45, 101, 0, b""), ..at_version(100, 45) };
    assert_eq!(engine.put(&next), (1, 50, 101));
    assert_eq!(engine.head(ITEM).made, 45, "the writer's number stays");
}

#[test]
fn a_page_does_not_replace_what_is_newer() {
    let engine = Engine::with_number(50);
    engine.query::<()>(&[b"SET", ITEM.as_bytes(), &item(0, 40, 90, 0, b"")]);
    assert_eq!(engine.put(&page(89, 45)), (0, 50, 90), "written after the page was begun");
    assert_eq!(engine.put(&page(90, 39)), (0, 50, 90), "made under a later number");
    assert_eq!(engine.put(&page(90, 40)), (1, 50, 100));
    assert_eq!(engine.head(ITEM).made, 40, "the writer's number");
}

#[test]
fn a_page_older_than_the_last_flush_is_purged() {
    let engine = Engine::start();
    engine.set_number("50:48", "48:49");
    assert_eq!(engine.put(&page(0, 47)), (2, 50, 0));
    assert_eq!(engine.put(&page(0, 48)), (1, 50, 100), "a soft flush makes it stale only");
}

#[test]
fn a_number_greater_than_the_engines_is_lowered_to_it() {
    let engine = Engine::with_number(50);
    assert_eq!(engine.put(&page(0, 60)), (1, 50, 100));
    assert_eq!(engine.head(ITEM).made, 50, "the next purge must kill it");
}

#[test]
fn lost_numbers_begin_at_the_time_and_kill_all_older_items() {
    let whole = [["SET", NUMBER, "50:0"].as_slice(), &["HSET", PURGES, "", "0:0", "a", "7:0"]];
    let losses: [&[&str]; 9] = [
        &["DEL", NUMBER],
        &["DEL", PURGES],
        &["DEL", NUMBER, PURGES],
        &["SET", NUMBER, "fifty"],
        &["SET", NUMBER, "9007199254740991:0"],
        &["HSET", PURGES, "", "-1:0"],
        &["HDEL", PURGES, ""],
        &["SET", PURGES, "text"],
        &["HSET", PURGES, "", "51:0"],
    ];
    let engine = Engine::start();
    for loss in losses {
        for words in whole {
            engine.run(&["DEL", words[1]]);
            engine.run(words);
        }
        engine.run(loss);
        let before = now();
        // A number from before does not count any more.
        let (status, number, _) = engine.put(&page(0, 50));
        assert_eq!(status, 2, "{loss:?}");
        assert!((before..before + 60_000_000).contains(&number), "{loss:?}: {number}");
        assert_eq!(engine.run(&["GET", NUMBER]), format!("{number}:{number}"), "{loss:?}");
        assert_eq!(engine.run(&["HGETALL", PURGES]), format!("\n{number}:0"), "{loss:?}");
        assert_eq!((engine.ttl(NUMBER), engine.ttl(PURGES)), (-1, -1));
        let (status, again, _) = engine.put(&Put::default());
        assert_eq!((status, again), (1, number), "{loss:?}: it begins only once");
        assert_eq!(engine.head(ITEM).made, number);
        engine.run(&["DEL", ITEM]);
    }
}

#[test]
fn a_list_as_the_number_is_replaced() {
    let engine = Engine::with_number(50);
    engine.run(&["DEL", NUMBER]);
    engine.run(&["RPUSH", NUMBER, "a"]);
    let (status, number, _) = engine.put(&Put::default());
    assert_eq!(status, 1);
    assert_eq!(engine.run(&["GET", NUMBER]), format!("{number}:{number}"));
}

#[test]
fn a_lost_number_goes_on_after_a_greater_old_one() {
    let engine = Engine::start();
    let future = now() + 3_600_000_000;
    engine.run(&["SET", NUMBER, &format!("{future}:0")]);
    let (_, number, _) = engine.put(&Put::default());
    assert_eq!(number, future + 1);
}

#[test]
fn only_an_unconditional_write_replaces_an_unreadable_value() {
    let unknown_format = [&[2], &item(0, 0, 5, 0, b"")[1..]].concat();
    let far = item(0, 0, u64::MAX, 0, b"");
    for value in [&unknown_format[..], b"text", &far, &item(0, 0, 5, 0, b"")[..30]] {
        let engine = Engine::with_number(50);
        engine.query::<()>(&[b"SET", ITEM.as_bytes(), value]);
        refuse_but_replace(&engine);
    }
    let engine = Engine::with_number(50);
    engine.run(&["RPUSH", ITEM, "a"]);
    refuse_but_replace(&engine);
}

fn refuse_but_replace(engine: &Engine) {
    for put in [at_version(0, 50), at_version(5, 50), at_version(UNREADABLE, 50), page(5, 50)] {
        assert_eq!(engine.put(&put), (0, 50, UNREADABLE), "{}", put.condition);
    }
    assert_eq!(engine.put(&Put::default()), (1, 50, 100));
    assert_eq!(engine.head(ITEM).version, 100);
}

#[test]
fn an_empty_value_counts_as_absent() {
    let engine = Engine::with_number(50);
    engine.run(&["SET", ITEM, ""]);
    assert_eq!(engine.put(&at_version(0, 50)), (1, 50, 100));
}

#[test]
fn a_megabyte_of_any_bytes_is_stored_as_it_is() {
    let engine = Engine::with_number(50);
    let value: Vec<u8> =
        (0..1 << 20).map(|at: u32| at.to_le_bytes()[usize::from(at.is_multiple_of(3))]).collect();
    engine.put(&Put { item: item(0, 0, 100, 0, &value), ..Put::default() });
    let found: Vec<u8> = engine.query(&[b"GET", ITEM.as_bytes()]);
    assert!(found == item(0, 50, 100, 0, &value), "{} bytes", found.len());
    let next = Put { item: item(0, 50, 101, 0, &value), ..at_version(100, 50) };
    assert_eq!(engine.put(&next), (1, 50, 101));
}

#[test]
fn a_full_engine_refuses_a_write_and_keeps_what_is_there() {
    let engine = Engine::with_number(50);
    engine.put(&Put { tags: &["kt:t"], ttl: 1_000, ..Put::default() });
    engine.run(&["CONFIG", "SET", "maxmemory", "1"]);
    let next =
        Put { tags: &["kt:t"], ttl: 3_600_000, item: item(0, 0, 101, 0, b""), ..Put::default() };
    let error = engine.try_put(&next).expect_err("no memory");
    // Redis 6.2 has another code before it.
    assert!(error.to_string().contains("OOM"), "{error}");
    assert_eq!(engine.run(&["EXISTS", ITEM]), "1");
    assert_ttl(engine.ttl("kt:t"), 1_202_000);
}
