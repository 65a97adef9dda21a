//! What a `POST /purge` names: JSON or a form. Pure.

use kirin_gateway::purge::command::Purge;
use kirin_http::form;
use serde::Deserialize;

/// How a body is written.
#[derive(Clone, Copy, Debug)]
pub enum Form {
    /// `{"keys": ["/"], "prefixes": ["/recent/"], "tags": ["memo-7"], "soft": true}`
    Json,
    /// `key=/&prefix=/recent/&tag=memo-7`, each as often as need be, and `soft=1`.
    UrlEncoded,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
#[derive(Default)]
struct Names {
    keys: Vec<String>,
    prefixes: Vec<String>,
    tags: Vec<String>,
    soft: bool,
}

/// Reads a body. At least one name must be in it.
pub fn parse(form: Form, body: &[u8]) -> Result<Purge, String> {
    let purge = match form {
        Form::Json => {
            let names: Names = serde_json::from_slice(body).map_err(|error| error.to_string())?;
            Purge { keys: names.keys, prefixes: names.prefixes, tags: names.tags, soft: names.soft }
        }
        Form::UrlEncoded => parse_form(body)?,
    };
    purge.check()?;
    if purge.is_empty() {
        return Err("nothing is named: give keys, prefixes or tags".into());
    }
    Ok(purge)
}

fn parse_form(body: &[u8]) -> Result<Purge, String> {
    let mut purge = Purge::default();
    for pair in form::pairs(body) {
        let (name, value) = form::name_and_value(pair);
        let value = decode(value)?;
        match name {
            b"key" => purge.keys.push(value),
            b"prefix" => purge.prefixes.push(value),
            b"tag" => purge.tags.push(value),
            b"soft" => {
                purge.soft = match value.as_str() {
                    "1" | "true" => true,
                    "0" | "false" => false,
                    _ => return Err("`soft` is none of 1, true, 0 and false".into()),
                }
            }
            name => {
                return Err(format!(
                    "`{}` is none of key, prefix, tag and soft",
                    String::from_utf8_lossy(name)
                ));
            }
        }
    }
    Ok(purge)
}

/// Takes off the coding of application/x-www-form-urlencoded.
fn decode(value: &[u8]) -> Result<String, String> {
    let decoded = form::decode_strict(value).ok_or("two hexadecimal digits follow a `%`")?;
    String::from_utf8(decoded).map_err(|_| "a name is no UTF-8".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse_text(form: Form, body: &str) -> Result<Purge, String> {
        parse(form, body.as_bytes())
    }

    #[test]
    fn names_come_as_json_or_as_a_form() {
        let expected = Purge {
            keys: vec!["/".into(), "/a?b=c".into()],
            prefixes: vec!["/recent/".into()],
            tags: vec!["memo-7".into()],
            soft: false,
        };
        let json = r#"{"keys": ["/", "/a?b=c"], "tags": ["memo-7"], "prefixes": ["/recent/"]}"#;
        assert_eq!(parse_text(Form::Json, json), Ok(expected.clone()));
        let form = "key=/&tag=memo-7&key=%2fa%3Fb%3dc&&prefix=/recent/";
        assert_eq!(parse_text(Form::UrlEncoded, form), Ok(expected));
        for (form, body, soft) in [
            (Form::Json, r#"{"tags": ["a"], "soft": true}"#, true),
            (Form::Json, r#"{"tags": ["a"], "soft": false}"#, false),
            (Form::UrlEncoded, "tag=a&soft=1", true),
            (Form::UrlEncoded, "soft=true&tag=a", true),
            (Form::UrlEncoded, "soft=0&tag=a", false),
        ] {
            assert_eq!(parse_text(form, body).map(|purge| purge.soft), Ok(soft), "{body}");
        }
    }

    #[test]
    fn what_is_malformed_is_refused() {
        for (form, body, message) in [
            (Form::Json, "{}", "nothing is named"),
            (Form::Json, "", "EOF"),
            (Form::Json, r#"{"soft": true}"#, "nothing is named"),
            (Form::Json, r#"{"tags": ["a"], "soft": 1}"#, "expected a boolean"),
            (Form::UrlEncoded, "soft=yes&tag=a", "none of 1, true"),
            (Form::Json, r#"{"tag": ["a"]}"#, "unknown field `tag`"),
            (Form::Json, r#"{"tags": ["a b"]}"#, "no space"),
            (Form::Json, r#"{"keys": [""]}"#, "1 to 250"),
            (Form::UrlEncoded, "", "nothing is named"),
            (Form::UrlEncoded, "keys=/", "`keys` is none of"),
            (Form::UrlEncoded, "key=%2", "two hexadecimal"),
            (Form::UrlEncoded, "key=%+1", "two hexadecimal"),
            (Form::UrlEncoded, "key=%ff", "no UTF-8"),
            (Form::UrlEncoded, "key=a+b", "no space"),
        ] {
            let error = parse_text(form, body).unwrap_err();
            assert!(error.contains(message), "{body}: {error}");
        }
    }

    proptest! {
        #[test]
        fn nothing_panics(body in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = parse(Form::Json, &body);
            let _ = parse(Form::UrlEncoded, &body);
        }
    }
}
