//! A value with variables for a field or for a key that is counted, such as `{scheme}://{host}`.
//!
//! Pure; made when the configuration is checked. A brace is a variable if a name follows it. So
//! JSON in a value stays as it is. `{{` stands for `{`.

use std::fmt;

use super::path_pattern::PathPattern;
use super::variables::{RequestValues, Variable};

/// A value with variables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueTemplate {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Variable(Variable),
}

impl ValueTemplate {
    /// Parses a value of a route with this path. The error says what is allowed.
    pub fn parse(text: &str, pattern: &PathPattern) -> Result<Self, String> {
        let (mut parts, mut literal, mut rest) = (Vec::new(), String::new(), text);
        while let Some((before, after)) = rest.split_once('{') {
            literal.push_str(before);
            rest = after;
            if let Some(after) = after.strip_prefix('{') {
                literal.push('{');
                rest = after;
                continue;
            }
            let Some((name, after)) = after.split_once('}').filter(|(name, _)| is_name(name))
            else {
                literal.push('{');
                continue;
            };
            if !literal.is_empty() {
                parts.push(Part::Text(std::mem::take(&mut literal)));
            }
            parts.push(Part::Variable(Variable::parse(name, pattern)?));
            rest = after;
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            parts.push(Part::Text(literal));
        }
        Ok(Self { parts })
    }

    /// Returns the text if there are no variables.
    pub fn as_text(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [] => Some(""),
            [Part::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// Returns whether `variable` is one of its variables.
    pub fn has(&self, variable: &Variable) -> bool {
        self.variables().any(|other| other == variable)
    }

    /// Returns the value for a request as a field can have it. Bytes that no field can have are
    /// percent-encoded (RFC 9110 section 5.5), so a value never begins a second line.
    pub fn fill_field(&self, request: &RequestValues<'_>) -> Vec<u8> {
        let mut filled = Vec::new();
        for part in &self.parts {
            match part {
                Part::Text(text) => filled.extend_from_slice(text.as_bytes()),
                Part::Variable(variable) => {
                    for byte in variable.value(request).iter() {
                        match byte {
                            0..=0x1f | 0x7f => {
                                filled.extend_from_slice(format!("%{byte:02X}").as_bytes());
                            }
                            _ => filled.push(*byte),
                        }
                    }
                }
            }
        }
        filled.trim_ascii().to_vec()
    }

    /// Returns the variables.
    pub fn variables(&self) -> impl Iterator<Item = &Variable> {
        self.parts.iter().filter_map(|part| match part {
            Part::Text(_) => None,
            Part::Variable(variable) => Some(variable),
        })
    }

    /// Appends the values of the variables to `key`. Returns whether there is a value.
    pub fn append_key(&self, request: &RequestValues<'_>, key: &mut Vec<u8>) -> bool {
        let mut has_value = false;
        for variable in self.variables() {
            has_value |= variable.append_key(request, key);
        }
        has_value
    }
}

/// The value as the configuration has it.
impl fmt::Display for ValueTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.parts.iter().try_for_each(|part| match part {
            Part::Text(text) => f.write_str(text),
            Part::Variable(variable) => variable.fmt(f),
        })
    }
}

/// Returns whether the text between two braces is meant as the name of a variable.
fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::request::test_requests::with_request;

    fn template(text: &str) -> Result<ValueTemplate, String> {
        ValueTemplate::parse(text, &PathPattern::parse("/u/{id}").unwrap())
    }

    fn filled(text: &str, head: &str) -> String {
        with_request(head, |request| {
            let value = template(text).unwrap().fill_field(&request.values());
            String::from_utf8(value).unwrap()
        })
    }

    #[test]
    fn variables_take_their_places_and_other_braces_stay() {
        let head = "GET /u/7/x?a=b HTTP/1.1\r\nHost: h.example\r\nX-A: v";
        for (text, expected) in [
            ("", ""),
            ("plain", "plain"),
            ("{scheme}://{host}/{id}", "http://h.example/7"),
            ("{header.X-A}-{query.a}{query.none}-", "v-b-"),
            (
                r#"{"group":"a","endpoints":[{"url":"x"}]}"#,
                r#"{"group":"a","endpoints":[{"url":"x"}]}"#,
            ),
            ("{{host}", "{host}"),
            ("{ host }{", "{ host }{"),
            ("}{}", "}{}"),
        ] {
            assert_eq!(filled(text, head), expected, "{text}");
        }
        assert!(template("{nobody}").unwrap_err().contains("`{host}`"));
        assert_eq!(template("a").unwrap().as_text(), Some("a"));
        assert_eq!(template("{host}").unwrap().as_text(), None);
    }

    #[test]
    fn a_value_cannot_begin_another_line() {
        let head = "GET /u/%0d%0aX:%20y?a=%0D%0ASet-Cookie:%20b=c%00%7f HTTP/1.1\r\nHost: h";
        assert_eq!(filled("{id}", head), "%0D%0AX: y");
        assert_eq!(filled("<{query.a}>", head), "<%0D%0ASet-Cookie: b=c%00%7F>");
    }

    #[test]
    fn keys_of_different_values_differ() {
        let key = |head: &str| {
            with_request(head, |request| {
                let mut key = Vec::new();
                let template = template("{header.a}{header.b}").unwrap();
                let has_value = template.append_key(&request.values(), &mut key);
                (has_value, key)
            })
        };
        let one = key("GET / HTTP/1.1\r\nHost: h\r\nA: x\r\nB: yz");
        let other = key("GET / HTTP/1.1\r\nHost: h\r\nA: xy\r\nB: z");
        assert_ne!(one, other);
        assert!(one.0 && !key("GET / HTTP/1.1\r\nHost: h").0);
    }

    proptest! {
        #[test]
        fn no_request_puts_a_control_character_into_a_field(argument in "[ -~]{0,40}", encoded in "(%[0-9a-f]{2}){0,20}") {
            let query = argument.replace([' ', '#'], "+");
            let head = format!("GET /u/x?a={query}{encoded} HTTP/1.1\r\nHost: h");
            with_request(&head, |request| {
                let value = template("<{query.a}>").unwrap().fill_field(&request.values());
                assert!(value.iter().all(|byte| *byte >= b' ' && *byte != 0x7f), "{value:?}");
            });
        }
    }
}
