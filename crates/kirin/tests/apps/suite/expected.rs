//! Compares what came with what the table expects.

use super::cases::{Content, Response, Texts};
use super::connection::Received;
use super::texts::{Memory, shown};

/// Fields between an adapter and the front, which no client may see.
const INTERNAL: [&str; 3] = ["kirin-cleanup", "kirin-file", "x-sendfile"];

/// Checks a response.
///
/// # Panics
/// Panics if it is another one than expected.
pub fn check(expected: &Response, came: &Received, memory: &Memory) {
    let head = shown(&came.head);
    let body = shown(&came.body);
    let status = expected.status.unwrap_or(200);
    assert_eq!(came.status, status, "the status; came {head} {body}");
    for name in expected.absent.iter().map(String::as_str).chain(INTERNAL) {
        assert!(came.values(name).is_empty(), "expected no field {name}; came {head}");
    }
    for name in &expected.present {
        assert!(!came.values(name).is_empty(), "expected a field {name}; came {head}");
    }
    check_fields(&expected.fields, came, memory);
    if let Some(framing) = expected.framing {
        assert_eq!(came.framing, framing, "the framing; came {head}");
    }
    let end = if expected.cut { "a cut response" } else { "a whole response" };
    assert_eq!(came.is_cut, expected.cut, "expected {end}; came {head} {body}");
    let trailers: Vec<Vec<u8>> = expected.trailers.iter().map(|line| memory.bytes(line)).collect();
    assert!(
        came.trailers == trailers,
        "expected the trailers {:?}; came {:?}",
        expected.trailers,
        { came.trailers.iter().map(|line| shown(line)).collect::<Vec<_>>() }
    );
    if let Some(content) = &expected.body {
        check_body(&memory.content(content), content, came);
    }
    if let Some(text) = &expected.not_body {
        let other = memory.bytes(text);
        assert!(came.body != other, "expected another body than {}", shown(&other));
    }
    for line in &expected.lines {
        let bytes = memory.bytes(line);
        let mut lines = came.body.split(|&byte| byte == b'\n');
        assert!(lines.any(|came| came == bytes), "expected the line {line:?}; came {body}");
    }
    for text in &expected.without {
        let bytes = memory.bytes(text);
        let mut windows = came.body.windows(bytes.len());
        assert!(!windows.any(|window| window == bytes), "expected no {text:?}; came {body}");
    }
}

/// Checks that each field comes as often as in the table, with these values.
fn check_fields(fields: &[String], came: &Received, memory: &Memory) {
    let parts = |line: &String| {
        let (name, value) = line.split_once(": ").unwrap_or_else(|| panic!("no field: {line:?}"));
        (name.to_owned(), memory.bytes(value))
    };
    let fields: Vec<(String, Vec<u8>)> = fields.iter().map(parts).collect();
    for (name, _) in &fields {
        let of_name = fields.iter().filter(|(other, _)| other == name);
        let values: Vec<&[u8]> = of_name.map(|(_, value)| value.as_slice()).collect();
        let (values, head) = (values.iter().map(|value| shown(value)), shown(&came.head));
        let came: Vec<String> = came.values(name).into_iter().map(shown).collect();
        assert_eq!(came, values.collect::<Vec<_>>(), "the field {name}; came {head}");
    }
}

/// Checks a body. The message has the place of the first difference.
fn check_body(expected: &[u8], content: &Content, came: &Received) {
    if came.body == expected {
        return;
    }
    let pairs = came.body.iter().zip(expected);
    let at = pairs.take_while(|(came, expected)| came == expected).count();
    let expected = match content {
        Content::Text(_) => shown(expected),
        Content::Pattern(_) => format!("{} bytes", expected.len()),
    };
    panic!(
        "expected the body {expected}; came {} bytes, which differ at {at}: {}; head {}",
        came.body.len(),
        shown(&came.body[at..]),
        shown(&came.head)
    );
}

/// Returns whether an entry of the log has all of these texts. An entry is a line, and the lines
/// behind it that start with a space.
pub fn is_logged(log: &str, texts: &Texts, memory: &Memory) -> bool {
    let texts: Vec<String> = match texts {
        Texts::One(text) => vec![memory.expand(text)],
        Texts::All(texts) => texts.iter().map(|text| memory.expand(text)).collect(),
    };
    let mut entries: Vec<String> = Vec::new();
    for line in log.split_inclusive('\n') {
        match entries.last_mut() {
            Some(entry) if line.starts_with([' ', '\t']) => entry.push_str(line),
            _ => entries.push(line.to_owned()),
        }
    }
    entries.iter().any(|entry| texts.iter().all(|text| entry.contains(text.as_str())))
}
