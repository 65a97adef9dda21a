//! The `headers` of a route: set on all of its responses, errors included.
//!
//! Pure; made when the configuration is checked.

use http::StatusCode;
use kirin_http::{FieldLines, Response};

use super::path_pattern::PathPattern;
use super::value_template::ValueTemplate;
use super::variables::{RequestValues, Variable};

/// Fields that Kirin writes itself: they are about the connection or the framing (RFC 9110 section
/// 7.6.1), or true for one response only.
const NOT_TO_BE_SET: [&str; 11] = [
    "connection",
    "keep-alive",
    "proxy-connection",
    "transfer-encoding",
    "te",
    "trailer",
    "upgrade",
    "content-length",
    "content-range",
    "date",
    "location",
];

/// Fields of the representation that a 304 must not have: a cache would replace its own with them
/// (RFC 9110 section 15.4.5).
const NOT_IN_304: [&str; 3] = ["content-type", "content-encoding", "content-language"];

/// Checks that Kirin may set the response field `name`. The error says what is allowed.
pub fn check_settable(name: &str) -> Result<(), String> {
    if NOT_TO_BE_SET.iter().any(|other| other.eq_ignore_ascii_case(name)) {
        return Err(format!("header `{name}` is Kirin's own: it cannot be set or removed"));
    }
    let checked = FieldLines::new().try_push(name.as_bytes(), b"");
    checked.map_err(|error| format!("header `{name}`: {error}"))
}

/// The fields of `headers`, ready to be applied.
#[derive(Clone, Debug, Default)]
pub struct ResponseFields {
    names: Vec<String>,
    set: FieldLines,
    set_in_304: FieldLines,
    /// The fields whose values have variables.
    templates: Vec<(String, ValueTemplate)>,
}

impl ResponseFields {
    /// Adds a field of a route with this path. An empty value removes the field from the responses
    /// of places. The error says what is allowed.
    pub fn add(&mut self, name: &str, value: &str, pattern: &PathPattern) -> Result<(), String> {
        let lower = name.to_ascii_lowercase();
        check_settable(name)?;
        if self.names.contains(&lower) {
            return Err(format!(
                "header `{name}` is there twice; names are the same in upper and lower case"
            ));
        }
        let template = ValueTemplate::parse(value, pattern)
            .map_err(|error| format!("header `{name}`: {error}"))?;
        let mut line = FieldLines::new();
        line.try_push(name.as_bytes(), template.as_text().unwrap_or(value).as_bytes())
            .map_err(|error| format!("header `{name}`: {error}"))?;
        if template.as_text().is_none() {
            self.templates.push((name.to_owned(), template));
        } else if !value.is_empty() {
            self.set.append(&line);
            if may_be_in_304(name.as_bytes()) {
                self.set_in_304.append(&line);
            }
        }
        self.names.push(lower);
        Ok(())
    }

    /// Returns the names of all fields, in lower case.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Returns whether there are no fields.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Returns whether a value depends on the request.
    pub fn has_variables(&self) -> bool {
        !self.templates.is_empty()
    }

    /// Returns whether a value has `{user}`.
    pub fn has_user(&self) -> bool {
        self.templates.iter().any(|(_, template)| template.has(&Variable::User))
    }

    /// Returns the fields with variables for a request. A field without a value is left out.
    pub fn fill(&self, request: &RequestValues<'_>) -> FieldLines {
        let mut filled = FieldLines::new();
        for (name, template) in &self.templates {
            let value = template.fill_field(request);
            if !value.is_empty() {
                // The name was checked, and the value has no byte that a field cannot have.
                let _ = filled.try_push(name.as_bytes(), &value);
            }
        }
        filled
    }

    /// Sets and removes the fields of a response. `filled` are the fields with variables.
    pub fn apply(&self, response: &mut Response, filled: &FieldLines) {
        for name in &self.names {
            response.fields.remove(name);
        }
        let set =
            if response.status == StatusCode::NOT_MODIFIED { &self.set_in_304 } else { &self.set };
        response.fields.append(set);
        for (name, value) in filled.iter() {
            if response.status != StatusCode::NOT_MODIFIED || may_be_in_304(name) {
                let _ = response.fields.try_push(name, value);
            }
        }
    }
}

/// Returns whether a 304 may have the field.
fn may_be_in_304(name: &[u8]) -> bool {
    !NOT_IN_304.iter().any(|other| other.as_bytes().eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::test_requests::with_request;
    use kirin_http::Body;

    fn applied(status: u16, fields: &[(&str, &str)]) -> Vec<(String, String)> {
        let mut rule = ResponseFields::default();
        for (name, value) in fields {
            rule.add(name, value, &PathPattern::default()).unwrap();
        }
        let mut response = Response::new(
            kirin_workers::ANSWERED_BY,
            StatusCode::from_u16(status).unwrap(),
            Body::Empty,
        );
        response.fields.push("Server", "x");
        response.fields.push("x-powered-by", "perl");
        response.fields = response.fields.prepare();
        let filled =
            with_request("GET / HTTP/1.1\r\nHost: h", |request| rule.fill(&request.values()));
        rule.apply(&mut response, &filled);
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        response.fields.iter().map(|(name, value)| (text(name), text(value))).collect()
    }

    #[test]
    fn fields_are_set_replaced_and_removed() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let rule = [("X-Frame-Options", "DENY"), ("SERVER", "kirin"), ("X-Powered-By", "")];
        assert_eq!(applied(200, &rule), [pair("X-Frame-Options", "DENY"), pair("SERVER", "kirin")]);
        assert_eq!(applied(502, &rule), applied(200, &rule));
        assert_eq!(applied(200, &[]), [pair("Server", "x"), pair("x-powered-by", "perl")]);
    }

    #[test]
    fn a_304_gets_no_field_of_the_representation() {
        let rule = [("Content-Type", "text/x"), ("Cache-Control", "no-cache"), ("Server", "")];
        let names =
            |status| applied(status, &rule).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        assert_eq!(names(304), ["x-powered-by", "Cache-Control"]);
        assert_eq!(names(200), ["x-powered-by", "Content-Type", "Cache-Control"]);
    }

    #[test]
    fn fields_that_would_break_a_response_are_refused() {
        for (name, value, expected) in [
            ("Content-Length", "1", "Kirin's own"),
            ("transfer-encoding", "", "Kirin's own"),
            ("CONNECTION", "close", "Kirin's own"),
            ("X y", "1", "not a token"),
            ("", "1", "not a token"),
            ("X", "a\r\nSet-Cookie: b", "control character"),
            ("X", "a\0", "control character"),
        ] {
            let error =
                ResponseFields::default().add(name, value, &PathPattern::default()).unwrap_err();
            assert!(error.contains(expected), "{name}: {error}");
        }
        let mut rule = ResponseFields::default();
        let root = PathPattern::default();
        rule.add("X-A", "1", &root).unwrap();
        assert!(rule.add("x-a", "2", &root).unwrap_err().contains("twice"));
    }
}
