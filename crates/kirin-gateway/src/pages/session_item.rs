//! The members of a session, parsed from JSON once and kept beside the item in the store.
//!
//! Pure; called by [`crate::pages::session`].

use bytes::Bytes;
use serde_json::Value;

/// The longest session, in bytes. A page could not use a longer one.
const MAX_BYTES: usize = 64 * 1024;

/// The deepest nesting of objects and arrays. Deeper ones are left out.
const MAX_DEPTH: usize = 8;

/// The value of true, as in Perl and nginx.
const TRUE: Bytes = Bytes::from_static(b"1");

/// An item that was read as a session.
#[derive(Debug)]
pub struct SessionItem {
    /// The members by name. None if the item is no JSON object.
    members: Option<Vec<(Box<str>, Member)>>,
}

/// A value in a session.
#[derive(Debug)]
enum Member {
    /// A string, a number as JSON writes it, "1" for true, and an empty text for false and null.
    Text(Bytes),
    Object(Vec<(Box<str>, Member)>),
    Array(Vec<Member>),
}

impl SessionItem {
    /// Parses `value`. The second part is the memory it takes beside the item, in bytes.
    pub fn parse(value: &Bytes) -> (Self, usize) {
        let parsed = match value.len() <= MAX_BYTES && value.trim_ascii_start().starts_with(b"{") {
            true => serde_json::from_slice(value).ok(),
            false => None,
        };
        let mut memory_bytes = size_of::<Self>() + 64;
        let members = match parsed {
            Some(Value::Object(members)) => Some(
                members
                    .into_iter()
                    .filter_map(|(name, value)| named(name, value, 1, &mut memory_bytes))
                    .collect(),
            ),
            _ => None,
        };
        (Self { members }, memory_bytes)
    }

    /// Returns whether the item is a session.
    pub fn is_session(&self) -> bool {
        self.members.is_some()
    }

    /// Returns the value at `path`: names of members and indexes of arrays, with dots between.
    /// Variables of pages have names in lower case. A member of exactly this name is taken, or else
    /// one that differs in case only. An object or array is true.
    pub fn member(&self, path: &str) -> Option<Bytes> {
        let mut steps = path.split('.');
        let mut found = in_object(self.members.as_ref()?, steps.next()?)?;
        for step in steps {
            found = match found {
                Member::Object(members) => in_object(members, step)?,
                Member::Array(elements) => elements.get(step.parse::<usize>().ok()?)?,
                Member::Text(_) => return None,
            };
        }
        Some(match found {
            Member::Text(text) => text.clone(),
            Member::Object(_) | Member::Array(_) => TRUE,
        })
    }
}

fn in_object<'a>(members: &'a [(Box<str>, Member)], name: &str) -> Option<&'a Member> {
    let exact = members.iter().find(|(other, _)| **other == *name);
    let found =
        exact.or_else(|| members.iter().find(|(other, _)| other.eq_ignore_ascii_case(name)));
    found.map(|(_, member)| member)
}

fn named(
    name: String,
    value: Value,
    depth: usize,
    memory_bytes: &mut usize,
) -> Option<(Box<str>, Member)> {
    let member = Member::from_json(value, depth, memory_bytes)?;
    *memory_bytes += size_of::<Box<str>>() + name.len();
    Some((name.into_boxed_str(), member))
}

impl Member {
    fn from_json(value: Value, depth: usize, memory_bytes: &mut usize) -> Option<Self> {
        *memory_bytes += size_of::<Self>();
        let text = match value {
            Value::Null | Value::Bool(false) => Bytes::new(),
            Value::Bool(true) => TRUE,
            Value::Number(number) => Bytes::from(number.to_string()),
            Value::String(text) => Bytes::from(text),
            Value::Object(_) | Value::Array(_) if depth == MAX_DEPTH => return None,
            Value::Object(members) => {
                let members = members.into_iter();
                let members =
                    members.filter_map(|(name, value)| named(name, value, depth + 1, memory_bytes));
                return Some(Member::Object(members.collect()));
            }
            Value::Array(elements) => {
                let elements = elements.into_iter();
                let elements = elements.map(|value| {
                    // An element that is left out keeps its place: the others are found by their
                    // number.
                    Member::from_json(value, depth + 1, memory_bytes)
                        .unwrap_or(Member::Text(Bytes::new()))
                });
                return Some(Member::Array(elements.collect()));
            }
        };
        *memory_bytes += text.len();
        Some(Member::Text(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(json: &str) -> SessionItem {
        SessionItem::parse(&Bytes::copy_from_slice(json.as_bytes())).0
    }

    #[test]
    fn members_are_found_by_name_and_index() {
        let session = parse(
            r#"{"name":"m\u00e4ri <b>","Name":"other","firstName":"M\u00e4ri","n":-1.5,"big":12345678901234567890,"yes":true,"no":false,
                "nothing":null,"empty":"","a":{"b":{"c":"deep"}},"list":["x",["y"],{"z":1}]}"#,
        );
        for (path, value) in [
            ("name", Some("märi <b>")),
            ("Name", Some("other")),
            ("NAME", Some("märi <b>")),
            ("firstname", Some("Märi")),
            ("FIRSTNAME", Some("Märi")),
            ("n", Some("-1.5")),
            ("big", Some("12345678901234567890")),
            ("yes", Some("1")),
            ("no", Some("")),
            ("nothing", Some("")),
            ("empty", Some("")),
            ("none", None),
            ("a", Some("1")),
            ("a.b.c", Some("deep")),
            ("a.b.d", None),
            ("a.b.c.d", None),
            ("list", Some("1")),
            ("list.0", Some("x")),
            ("list.1.0", Some("y")),
            ("list.2.z", Some("1")),
            ("list.3", None),
            ("list.-1", None),
            ("list.x", None),
            ("", None),
            ("a.", None),
            (".a", None),
        ] {
            assert_eq!(session.member(path).as_deref(), value.map(str::as_bytes), "{path}");
        }
    }

    #[test]
    fn only_a_json_object_of_limited_size_is_a_session() {
        let long = |length: usize| format!(r#"{{"a":"{}"}}"#, "x".repeat(length));
        for (json, is_session) in [
            ("{}", true),
            (" {\"a\":1} ", true),
            ("{\"a\":1}{", false),
            ("{\"a\":}", false),
            ("[1]", false),
            ("1", false),
            ("", false),
            ("{\"a\":\"\u{1}\"}", false),
            (&long(60_000), true),
            (&long(65_536), false),
        ] {
            assert_eq!(parse(json).is_session(), is_session, "{}", &json[..json.len().min(40)]);
        }
        assert!(!SessionItem::parse(&Bytes::from_static(b"{\"a\":\"\xff\"}")).0.is_session());
    }

    #[test]
    fn values_that_are_nested_too_deep_are_left_out() {
        let nested = |depth: usize| format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
        let path = |depth: usize| vec!["a"; depth].join(".");
        assert_eq!(parse(&nested(MAX_DEPTH)).member(&path(MAX_DEPTH)).unwrap(), "1");
        let deeper = parse(&nested(MAX_DEPTH + 1));
        assert!(deeper.is_session());
        assert_eq!(deeper.member(&path(MAX_DEPTH)), None);
        assert_eq!(deeper.member(&path(MAX_DEPTH - 1)).unwrap(), "1");
        assert!(!parse(&nested(10_000)).is_session());
    }

    proptest! {
        #[test]
        fn any_item_can_be_read_as_a_session(
            json in "([\\{\\}\\[\\],:]|\"a\"|\"b\"|1|true){0,40}",
            path in "[ab0-9.]{0,12}",
        ) {
            let (session, memory_bytes) = SessionItem::parse(&Bytes::from(json.clone()));
            prop_assert!(memory_bytes >= size_of::<SessionItem>());
            if session.member(&path).is_some() {
                prop_assert!(session.is_session(), "{json}");
            }
        }
    }
}
