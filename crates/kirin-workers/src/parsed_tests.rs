//! Tests of the parameters and cookies that Kirin parses for workers.

use proptest::prelude::*;

use super::*;

/// Returns the parts of the appended value; `None` if there is none.
fn parts(push: impl FnOnce(&mut Vec<u8>)) -> Option<Vec<String>> {
    let mut block = b"BEFORE\0".to_vec();
    push(&mut block);
    let value = block.strip_prefix(b"BEFORE\0").expect("what was there is untouched");
    if value.is_empty() {
        return None;
    }
    let value = value.strip_suffix(b"\0").expect("a value ends in NUL");
    let name_ends = value.iter().position(|byte| *byte == 0).expect("a name ends in NUL");
    let value = &value[name_ends + 1..];
    assert!(!value.contains(&0), "{value:?}");
    Some(value.split(|byte| *byte == SEPARATOR).map(text_of).collect())
}

/// Returns bytes as the characters with these numbers.
fn text_of(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| char::from(*byte)).collect()
}

fn query(text: &str) -> Option<Vec<String>> {
    let mut parts = parts(|block| push_query(block, text))?;
    assert_eq!(parts.remove(0), text_of(text.as_bytes()), "the query comes first");
    Some(parts)
}

fn cookies(field: &str) -> Option<Vec<String>> {
    let mut parts = parts(|block| push_cookies(block, field.as_bytes()))?;
    assert_eq!(parts.remove(0), text_of(field.as_bytes()), "the field comes first");
    Some(parts)
}

fn form(content_type: &str, body: &[u8]) -> Option<Vec<String>> {
    parts(|block| push_form(block, content_type.as_bytes(), body))
}

#[test]
fn a_query_is_taken_apart_as_perl_does_it() {
    for (text, expected) in [
        ("a=1&b=2", &["a", "1", "b", "2"][..]),
        ("a=1;b=2", &["a", "1", "b", "2"]),
        ("a", &["a", ""]),
        ("a=", &["a", ""]),
        ("=a", &["", "a"]),
        ("=", &["", ""]),
        ("&", &["", "", "", ""]),
        ("a&&b", &["a", "", "", "", "b", ""]),
        ("a=b=c", &["a", "b=c"]),
        ("a=1& b=2&  c=3", &["a", "1", "b", "2", " c", "3"]),
        ("a=1&+b=2", &["a", "1", " b", "2"]),
        ("a+b=%2B+%2b", &["a b", "+ +"]),
        ("%41%5a=%zz%4%", &["AZ", "%zz%4%"]),
        ("a=%%41&b=%25%34%31", &["a", "%A", "b", "%41"]),
        ("a%3Db%26c=d%3b", &["a=b&c", "d;"]),
        ("a=%e9%BA%92", &["a", "\u{e9}\u{ba}\u{92}"]),
        ("a=1&a=2&a=1", &["a", "1", "a", "2", "a", "1"]),
    ] {
        assert_eq!(query(text).unwrap(), expected, "{text}");
    }
}

#[test]
fn cookies_are_taken_apart_as_perl_does_it() {
    for (field, expected) in [
        ("a=1; b=2;c=3", &["a", "1", "b", "2", "c", "3"][..]),
        ("a=1; a=2; %61=3", &["a", "1"]),
        ("a; b=; =c; ;;", &["b", "", "", "c"]),
        ("a=\"x y\"; b=\"\"; c=\"; d=\"\"x\"\"", &["a", "x y", "b", "", "c", "\"", "d", "\"x\""]),
        ("a=%22x%22; b=1+2", &["a", "\"x\"", "b", "1+2"]),
        ("\ta = 1 ;   b=2\t", &["a ", " 1", "b", "2"]),
        ("a=b=c; a%3db=%zz", &["a", "b=c", "a=b", "%zz"]),
        ("a=1, b=2", &["a", "1, b=2"]),
    ] {
        assert_eq!(cookies(field).unwrap(), expected, "{field}");
    }
    assert_eq!(cookies("nothing; here"), None, "no cookie");
}

#[test]
fn a_form_is_what_plack_takes_for_one() {
    let type_ = "application/x-www-form-urlencoded";
    assert_eq!(form(type_, b"a=1&b").unwrap(), ["5", "a", "1", "b", ""]);
    assert_eq!(form(&format!("{type_}; charset=UTF-8"), b"a").unwrap(), ["1", "a", ""]);
    assert_eq!(form(type_, b"").unwrap(), ["0"]);
    for other in [
        "",
        "text/plain",
        "Application/x-www-form-urlencoded",
        " application/x-www-form-urlencoded",
    ] {
        assert_eq!(form(other, b"a=1"), None, "{other}");
    }
}

#[test]
fn pairs_with_separators_or_too_many_bytes_are_not_sent() {
    for text in ["a=%00", "%1f=b", "a=1&b=%1F", "a\u{1f}", ""] {
        assert_eq!(query(text), None, "{text:?}");
    }
    for field in ["a=%00", "%1f=b", "a=\u{1f}"] {
        assert_eq!(cookies(field), None, "{field:?}");
    }
    assert_eq!(form("application/x-www-form-urlencoded", b"a\0=1"), None);
    let long = "a=".repeat(MAX_PARSED_BYTES / 2);
    assert!(query(&long).is_some());
    assert_eq!(query(&(long.clone() + "a")), None);
    assert_eq!(form("application/x-www-form-urlencoded", (long + "a").as_bytes()), None);
}

#[test]
fn the_parts_that_any_running_worker_wants_are_parsed() {
    let wanted = WantedByWorkers::default();
    let all = Wanted::from_list("cookies,query,mood,form");
    assert_eq!(all, Wanted { query: true, form: true, cookies: true });
    assert_eq!(wanted.get(), Wanted::default());
    wanted.set(
        [Wanted::from_list("query"), Wanted::default(), Wanted::from_list("cookies")].into_iter(),
    );
    assert_eq!(wanted.get(), Wanted { query: true, form: false, cookies: true });
    wanted.set([Wanted::from_list(""), Wanted::from_list("mood")].into_iter());
    assert_eq!(wanted.get(), Wanted::default());
}

proptest! {
    #[test]
    fn any_text_becomes_pairs_or_is_not_sent(text in "[a-f%&;=+ \"\t0-9\u{0}\u{1f}\u{e9}]{0,60}") {
        if let Some(parts) = query(&text) {
            let pairs = text.bytes().filter(|byte| matches!(byte, b'&' | b';')).count() + 1;
            prop_assert_eq!(parts.len(), 2 * pairs, "{:?}", parts);
        }
        if let Some(parts) = cookies(&text) {
            prop_assert_eq!(parts.len() % 2, 0);
            let mut names: Vec<_> = parts.iter().step_by(2).collect();
            let count = names.len();
            names.sort();
            names.dedup();
            prop_assert_eq!(names.len(), count, "{:?}", parts);
        }
    }
}

#[test]
fn parsing_costs_no_more_than_what_is_parsed() {
    let mut table = kirin_doubling::Table::new();
    let text = |piece: &'static str| move |count: usize| piece.repeat(count);
    let many = |count: usize| (0..count).map(|number| format!("{number:x}=;")).collect::<String>();
    let long = |count: usize| {
        (0..count).map(|number| format!("{}{number:x}=; ", "a".repeat(40))).collect::<String>()
    };
    let cookies = |field: &String| {
        let mut block = Vec::new();
        push_cookie_pairs(&mut block, field.as_bytes()).is_ok()
    };
    table.check("cookies of different names", 150, many, cookies);
    table.check("cookies of long names", 150, long, cookies);
    for piece in ["a=b; ", ";", "=", "=;", "a=\"", " ", "%41=;", "%", "a=b;  "] {
        table.check(&format!("cookies {piece}"), 150, text(piece), cookies);
    }
    let urlencoded = |text: &String| push_urlencoded(&mut Vec::new(), text.as_bytes()).is_ok();
    table.check("parameters of different names", 150, many, urlencoded);
    for piece in ["a=b&", "&", ";", "=", "+", "%41", "%", "& ", "%4"] {
        table.check(&format!("parameters {piece}"), 150, text(piece), urlencoded);
    }
    table.finish();
}

#[test]
fn the_first_of_many_cookies_with_one_name_counts() {
    let field: String = (0..100).map(|number| format!("n{}={number}; ", number % 40)).collect();
    let expected: Vec<_> =
        (0..40).flat_map(|number| [format!("n{number}"), number.to_string()]).collect();
    assert_eq!(cookies(&field), Some(expected));
}
