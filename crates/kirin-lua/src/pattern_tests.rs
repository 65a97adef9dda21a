//! Tests of Lua patterns.

use proptest::prelude::*;

use super::*;

/// Returns the result of Lua's own functions: the first byte, the last byte and the captures. In
/// Lua 5.1 a NUL ends a pattern; here, as in Lua 5.2, it is a byte like any other. So the patterns
/// of these tests have no NUL.
fn by_lua(
    lua: &mlua::Lua,
    subject: &[u8],
    pattern: &[u8],
    from: usize,
) -> Result<Option<Match>, String> {
    let find: mlua::Function =
        lua.globals().get::<mlua::Table>("string").unwrap().get("find").unwrap();
    let arguments =
        (lua.create_string(subject).unwrap(), lua.create_string(pattern).unwrap(), from + 1);
    let found: mlua::MultiValue = find.call(arguments).map_err(|error| error.to_string())?;
    let mut found = found.into_iter();
    let Some(mlua::Value::Integer(start)) = found.next() else { return Ok(None) };
    let Some(mlua::Value::Integer(end)) = found.next() else { panic!("a start without an end") };
    let captures = found
        .map(|capture| match capture {
            mlua::Value::Integer(position) => Captured::Position(position as usize - 1),
            mlua::Value::String(text) => Captured::Bytes(text.as_bytes().to_vec()),
            other => panic!("{other:?}"),
        })
        .collect::<Vec<_>>();
    let start = start as usize - 1;
    Ok(Some(Match { start, end: end as usize, captures: compared(&captures) }))
}

enum Captured {
    Position(usize),
    Bytes(Vec<u8>),
}

/// Returns captures by their text, not by their position, because Lua does not report that.
fn compared(captures: &[Captured]) -> Vec<Capture> {
    let digest =
        |bytes: &[u8]| bytes.iter().fold(7usize, |sum, byte| sum.wrapping_mul(31) + *byte as usize);
    captures
        .iter()
        .map(|capture| match capture {
            Captured::Position(at) => Capture::Position(*at),
            Captured::Bytes(bytes) => Capture::Bytes { start: bytes.len(), end: digest(bytes) },
        })
        .collect()
}

fn ours(subject: &[u8], pattern: &[u8], from: usize) -> Result<Option<Match>, String> {
    let found = find::<()>(subject, pattern, from, true, &mut |_| Ok(()))
        .map_err(|error| format!("{error:?}"))?;
    Ok(found.map(|found| {
        let captures = found.captures.iter().map(|capture| match capture {
            Capture::Position(at) => Captured::Position(*at),
            Capture::Bytes { start, end } => Captured::Bytes(subject[*start..*end].to_vec()),
        });
        Match { captures: compared(&captures.collect::<Vec<_>>()), ..found }
    }))
}

/// Checks that both matchers agree. `from` is inside of the subject.
fn same(lua: &mlua::Lua, subject: &[u8], pattern: &[u8], from: usize) {
    // Both search for a plain string without the matcher then.
    if is_plain(pattern) {
        return;
    }
    let (theirs, ours) = (by_lua(lua, subject, pattern, from), ours(subject, pattern, from));
    let shown = (String::from_utf8_lossy(subject), String::from_utf8_lossy(pattern));
    match (theirs, ours) {
        (Ok(theirs), Ok(ours)) => assert_eq!(ours, theirs, "{shown:?} from {from}"),
        (Err(_), Err(_)) => {}
        (theirs, ours) => panic!("{shown:?} from {from}: Lua {theirs:?}, here {ours:?}"),
    }
}

#[test]
fn patterns_match_as_in_lua() {
    let lua = mlua::Lua::new();
    let subjects = [
        "",
        "hello world",
        "key = value",
        "(a(b)c) d",
        "THE (quick) fox",
        "2024-01-02",
        "aaab",
        "\0x\u{e9}",
        "[]",
    ];
    let patterns = [
        "",
        "l+",
        "(%w+)%s*=%s*(%w+)",
        "%b()",
        "%f[%a]%a+%f[%A]",
        "^h",
        "d$",
        "^$",
        "()",
        "()ll()",
        "(a*(.)%w(%s*))",
        "a-b",
        ".-b",
        "[^%s]+",
        "[%]a]+",
        "[]]",
        "[^]]",
        "[a-c%-]",
        "[a-]",
        "(%d+)-(%d+)-(%d+)",
        "%z",
        "%Z",
        "(l)%1",
        "(l)(%1)",
        "%1",
        "(",
        ")",
        "[",
        "[a",
        "%",
        "%b",
        "%f",
        "(()",
        "a**",
        "a?b?",
        "%w*",
        "$",
        "$a",
        "a$b",
        "^^",
        "-",
        "+",
        "*a",
        "?",
        "[%",
        "[%a",
        "(a)(b)(c)(d)(e)(f)(g)(h)(i)(j)(k)(l)(m)(n)(o)(p)(q)(r)(s)(t)(u)(v)(w)(x)(y)(z)(1)(2)(3)(4)(5)(6)(7)",
        "[z-a]",
        "%g+",
        "%p",
    ];
    for subject in subjects {
        for pattern in patterns {
            for from in 0..=subject.len() {
                same(&lua, subject.as_bytes(), pattern.as_bytes(), from);
            }
        }
    }
}

#[test]
fn a_pattern_that_would_take_years_is_stopped() {
    let subject = vec![b'a'; 100];
    let pattern = b"a-a-a-a-a-a-a-a-b";
    let mut steps = 0;
    let stopped = find(&subject, pattern, 0, true, &mut |units| {
        steps += units;
        if steps > 10_000 { Err("enough") } else { Ok(()) }
    });
    assert_eq!(stopped, Err(SearchError::Stopped("enough")));
}

/// Returns the units of work until the search ends.
fn work(subject: &[u8], pattern: &[u8]) -> usize {
    let mut work = 0;
    let found = find::<()>(subject, pattern, 0, true, &mut |units| {
        work += units;
        Ok(())
    });
    assert!(found.is_ok(), "{found:?}");
    work
}

#[test]
fn the_work_counted_grows_with_sets_and_captures() {
    let set = |count: usize| [b"[", "bcde".repeat(count).as_bytes(), b"]"].concat();
    let text = vec![b'a'; 1000];
    for suffix in ["", "*$", "+", "-x", "?x"] {
        let pattern = |count| [&set(count)[..], suffix.as_bytes()].concat();
        let (small, large) = (work(&text, &pattern(100)), work(&text, &pattern(1000)));
        assert!(large > 5 * small, "{suffix:?}: {small} and {large}");
    }
    assert!(work(b"a", &[b"%f", &set(1000)[..]].concat()) > 500);
    let long = vec![b'a'; 32_000];
    assert!(work(&long[..15_999], b"^(a*)%1$") > 500_000, "{}", work(&long[..15_999], b"^(a*)%1$"));
}

proptest! {
    #[test]
    fn any_pattern_matches_as_in_lua(
        subject in proptest::collection::vec(prop_oneof![Just(b'a'), Just(b'b'), Just(b' '), Just(b'('), Just(b')'), Just(0), any::<u8>()], 0..12),
        pattern in proptest::collection::vec(proptest::sample::select(b"ab()[]%^$.*+-?wsdfb1 A".to_vec()), 0..9),
        from in 0usize..4,
    ) {
        let lua = mlua::Lua::new();
        if from <= subject.len() {
            same(&lua, &subject, &pattern, from);
        }
    }
}
