//! purge.lua.

use crate::engine::{
    Engine, Head, ITEM, NUMBER, PURGES, Put, STALE, TAG, TEN_MINUTES, TOMBSTONE, WON, assert_ttl,
    item, now,
};

#[test]
fn a_purge_takes_the_time_or_the_next_number() {
    let engine = Engine::with_number(50);
    let before = now();
    let (number, ..) = engine.purge("hard", &[], &[], &[]);
    assert!((before..before + 60_000_000).contains(&number), "{number}, not {before}");
    assert_eq!(engine.run(&["GET", NUMBER]), format!("{number}:0"), "no prefix");
    let future = now() + 3_600_000_000;
    engine.run(&["SET", NUMBER, &format!("{future}:9")]);
    assert_eq!(engine.purge("soft", &[TAG], &[], &[]), (future + 1, 0, 0));
    assert_eq!(engine.run(&["GET", NUMBER]), format!("{}:9", future + 1));
}

#[test]
fn a_purge_of_prefixes_is_noted_beside_the_number() {
    let engine = Engine::with_number(50);
    engine.run(&["HSET", PURGES, "old", "7:8", "bad", "text"]);
    let (number, ..) = engine.purge("hard", &[], &["old", "new\r\n", "bad"], &[]);
    assert_eq!(engine.run(&["GET", NUMBER]), format!("{number}:{number}"));
    assert_eq!(engine.run(&["HGET", PURGES, "old"]), format!("{number}:8"));
    assert_eq!(engine.run(&["HGET", PURGES, "new\r\n"]), format!("{number}:0"));
    assert_eq!(engine.run(&["HGET", PURGES, "bad"]), format!("{number}:0"));
    assert_eq!(engine.run(&["HGET", PURGES, ""]), "0:0");
    let (soft, ..) = engine.purge("soft", &[], &["old", "other", ""], &[]);
    assert_eq!(engine.run(&["HGET", PURGES, "old"]), format!("{number}:{soft}"));
    assert_eq!(engine.run(&["HGET", PURGES, "other"]), format!("0:{soft}"));
    assert_eq!(engine.run(&["HGET", PURGES, ""]), format!("0:{soft}"));
}

#[test]
fn a_tag_gets_the_number_and_keeps_the_other() {
    let engine = Engine::with_number(50);
    engine.run(&["SET", TAG, "7:8"]);
    let (hard, items, tags) = engine.purge("hard", &[TAG, "kt:none"], &[], &[]);
    assert_eq!((items, tags), (0, 1));
    assert_eq!(engine.run(&["GET", TAG]), format!("{hard}:8"));
    assert_eq!(engine.run(&["GET", "kt:none"]), format!("{hard}:0"));
    let (soft, _, tags) = engine.purge("soft", &[TAG, "kt:none"], &[], &[]);
    assert_eq!(tags, 2);
    assert_eq!(engine.run(&["GET", TAG]), format!("{hard}:{soft}"));
}

#[test]
fn a_soft_purge_of_an_absent_tag_revives_nothing() {
    let engine = Engine::with_number(50);
    engine.run(&["RPUSH", TAG, "a"]);
    engine.run(&["SET", "kt:text", "text"]);
    let (number, _, tags) = engine.purge("soft", &[TAG, "kt:text", "kt:none"], &[], &[]);
    assert_eq!(tags, 0);
    for tag in [TAG, "kt:text", "kt:none"] {
        assert_eq!(engine.run(&["GET", tag]), format!("{number}:{number}"), "{tag}");
        assert_ttl(engine.ttl(tag), TEN_MINUTES);
    }
}

#[test]
fn a_purged_tag_lives_ten_minutes_at_least() {
    let engine = Engine::with_number(50);
    for kind in ["hard", "soft"] {
        for (before, after) in [(None, -1), (Some(5_000), TEN_MINUTES), (Some(900_000), 900_000)] {
            engine.run(&["SET", TAG, "7:8"]);
            if let Some(before) = before {
                engine.run(&["PEXPIRE", TAG, &before.to_string()]);
            }
            engine.purge(kind, &[TAG], &[], &[]);
            match after {
                -1 => assert_eq!(engine.ttl(TAG), -1),
                _ => assert_ttl(engine.ttl(TAG), after),
            }
        }
    }
}

#[test]
fn a_hard_purge_leaves_a_tombstone_also_where_nothing_was() {
    let engine = Engine::with_number(50);
    // Versions are even.
    let future = (now() + 3_600_000_000) / 2 * 2;
    engine.query::<()>(&[b"SET", ITEM.as_bytes(), &item(WON, 40, future, 9, b"value")]);
    let before = now();
    let (number, items, tags) = engine.purge("hard", &[], &[], &[ITEM, "ki:none"]);
    assert_eq!((items, tags), (1, 0));
    let tombstone = Head { marks: TOMBSTONE, made: number, version: future + 2, cas: 0 };
    assert_eq!(engine.head(ITEM), tombstone);
    assert_eq!(engine.run(&["STRLEN", ITEM]), "31");
    assert!(engine.head("ki:none").version >= before);
    assert_ttl(engine.ttl(ITEM), TEN_MINUTES);
    assert_ttl(engine.ttl("ki:none"), TEN_MINUTES);
    let page =
        Put { condition: "page", expected: u64::MAX >> 12, made: Some(50), ..Put::default() };
    assert_eq!(engine.put(&page).0, 0, "a page that was begun before");
    assert_eq!(engine.purge("hard", &[], &[], &[ITEM]).1, 0, "a tombstone is no item");
    assert_eq!(engine.head(ITEM).version, future + 4);
}

#[test]
fn a_soft_purge_marks_an_item_and_keeps_the_rest() {
    let engine = Engine::with_number(50);
    let before = now();
    engine.query::<()>(&[
        b"SET",
        ITEM.as_bytes(),
        &item(WON, 40, 90, 9, b"value"),
        b"PX",
        b"90000",
    ]);
    engine.query::<()>(&[b"SET", b"ki:tomb", &item(TOMBSTONE, 40, 90, 0, b"")]);
    let (_, items, _) = engine.purge("soft", &[], &[], &[ITEM, "ki:tomb", "ki:none"]);
    assert_eq!(items, 1);
    let head = engine.head(ITEM);
    assert_eq!((head.marks, head.made, head.cas), (STALE, 40, 0));
    assert!(head.version >= before, "{head:?}");
    let found: Vec<u8> = engine.query(&[b"GET", ITEM.as_bytes()]);
    assert_eq!(found, item(STALE, 40, head.version, 0, b"value"));
    assert_ttl(engine.ttl(ITEM), 90_000);
    for key in ["ki:tomb", "ki:none"] {
        let head = engine.head(key);
        assert_eq!(head.marks, TOMBSTONE, "no page in progress is stored as {key}");
        assert!(head.version >= before, "{head:?}");
    }
}

#[test]
fn an_unreadable_item_becomes_a_tombstone() {
    for kind in ["hard", "soft"] {
        let engine = Engine::with_number(50);
        engine.run(&["RPUSH", "ki:list", "a"]);
        engine.run(&["SET", "ki:text", "text"]);
        let far = item(0, 0, u64::MAX, 0, b"");
        engine.query::<()>(&[b"SET", b"ki:far", &[&[2], &far[1..]].concat()]);
        let (number, items, _) = engine.purge(kind, &[], &[], &["ki:list", "ki:text", "ki:far"]);
        assert_eq!(items, 3, "{kind}");
        for key in ["ki:list", "ki:text", "ki:far"] {
            let head = engine.head(key);
            assert_eq!((head.marks, head.made), (TOMBSTONE, number), "{kind} {key}");
            assert!(head.version <= now(), "{kind} {key}");
        }
    }
}

#[test]
fn a_purge_restores_lost_numbers() {
    let losses: [&[&str]; 4] =
        [&["DEL", NUMBER], &["DEL", PURGES], &["SET", PURGES, "text"], &["SET", NUMBER, "text"]];
    let engine = Engine::start();
    for loss in losses {
        engine.run(&["DEL", PURGES]);
        engine.set_number("50:0", "7:0");
        engine.run(loss);
        let (number, ..) = engine.purge("soft", &[TAG], &["a"], &[]);
        assert!(number > 1 << 50, "{loss:?}: {number}");
        assert_eq!(engine.run(&["GET", NUMBER]), format!("{number}:{number}"), "{loss:?}");
        assert_eq!(engine.run(&["HGET", PURGES, ""]), format!("{number}:0"), "{loss:?}");
        assert_eq!(engine.run(&["HGET", PURGES, "a"]), format!("0:{number}"), "{loss:?}");
    }
}

#[test]
fn the_older_half_of_too_many_prefixes_becomes_a_flush() {
    let engine = Engine::with_number(50);
    let mut numbers = Vec::new();
    for index in 0..1_100 {
        let kind = if index % 2 == 0 { "hard" } else { "soft" };
        numbers.push(engine.purge(kind, &[], &[&format!("p{index}")], &[]).0);
        if index == 1_023 {
            assert_eq!(engine.run(&["HLEN", PURGES]), "1025", "all of them, and the flush");
            assert_eq!(engine.run(&["HGET", PURGES, ""]), "0:0");
        }
    }
    // The 1,025th prefix dropped 512.
    assert_eq!(engine.run(&["HLEN", PURGES]), (1_100 - 512 + 1).to_string());
    assert_eq!(engine.run(&["HGET", PURGES, ""]), format!("{}:0", numbers[511]));
    assert_eq!(engine.run(&["HEXISTS", PURGES, "p511"]), "0");
    assert_eq!(engine.run(&["HGET", PURGES, "p512"]), format!("{}:0", numbers[512]));
    assert_eq!(engine.run(&["HGET", PURGES, "p1099"]), format!("0:{}", numbers[1_099]));
}

#[test]
fn too_many_prefixes_in_one_purge_are_a_flush() {
    let engine = Engine::with_number(50);
    let prefixes: Vec<_> = (0..1_100).map(|index| format!("p{index}")).collect();
    let prefixes: Vec<_> = prefixes.iter().map(String::as_str).collect();
    let (number, ..) = engine.purge("soft", &[], &prefixes, &[]);
    assert_eq!(engine.run(&["HLEN", PURGES]), "551");
    assert_eq!(engine.run(&["HGET", PURGES, ""]), format!("{number}:0"));
}

#[test]
fn a_full_engine_still_purges() {
    let engine = Engine::with_number(50);
    engine.put(&Put { tags: &[TAG], ..Put::default() });
    engine.run(&["CONFIG", "SET", "maxmemory", "1"]);
    let (number, items, tags) = engine.purge("hard", &[TAG], &["a"], &[ITEM]);
    assert_eq!((items, tags), (1, 1));
    assert_eq!(engine.run(&["GET", TAG]), format!("{number}:0"));
    assert_eq!(engine.head(ITEM).marks, TOMBSTONE);
}
