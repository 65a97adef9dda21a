//! The body of `POST /purge`: JSON or a form. Parsing does no I/O.

use kirin_gateway::purge::command::Purge;
use kirin_gateway::routing::site_names::SiteNames;
use kirin_http::form;
use serde::Deserialize;

/// The format of a body.
#[derive(Clone, Copy, Debug)]
pub enum BodyFormat {
    /// `{"keys": ["/"], "prefixes": ["/recent/"], "tags": ["memo-7"], "soft": true}`, and `"site":
    /// "example.org"` if the names are those of a site.
    Json,
    /// `key=/&prefix=/recent/&tag=memo-7`, each name any number of times, `soft=1`, and
    /// `site=example.org`.
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
    site: Option<String>,
}

/// Parses a body. It must name at least one key, prefix or tag. The names become those that the
/// store has.
pub fn parse(form: BodyFormat, body: &[u8], sites: &SiteNames) -> Result<Purge, String> {
    let (purge, site) = match form {
        BodyFormat::Json => {
            let Names { keys, prefixes, tags, soft, site } =
                serde_json::from_slice(body).map_err(|error| error.to_string())?;
            (Purge { keys, prefixes, tags, soft }, site)
        }
        BodyFormat::UrlEncoded => parse_form(body)?,
    };
    purge.check()?;
    if purge.is_empty() {
        return Err("nothing is named: give keys, prefixes or tags".into());
    }
    match site {
        Some(site) => purge.within(&sites.namespace(&site)?),
        None => Ok(purge),
    }
}

fn parse_form(body: &[u8]) -> Result<(Purge, Option<String>), String> {
    let (mut purge, mut site) = (Purge::default(), None);
    for pair in form::pairs(body) {
        let (name, value) = form::name_and_value(pair);
        let value = decode(value)?;
        match name {
            b"key" => purge.keys.push(value),
            b"prefix" => purge.prefixes.push(value),
            b"tag" => purge.tags.push(value),
            b"site" => site = Some(value),
            b"soft" => {
                purge.soft = match value.as_str() {
                    "1" | "true" => true,
                    "0" | "false" => false,
                    _ => return Err("`soft` is not one of 1, true, 0 and false".into()),
                }
            }
            name => {
                return Err(format!(
                    "`{}` is not one of key, prefix, tag, soft and site",
                    String::from_utf8_lossy(name)
                ));
            }
        }
    }
    Ok((purge, site))
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

    fn parse_text(form: BodyFormat, body: &str) -> Result<Purge, String> {
        parse(form, body.as_bytes(), &SiteNames::default())
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
        assert_eq!(parse_text(BodyFormat::Json, json), Ok(expected.clone()));
        let form = "key=/&tag=memo-7&key=%2fa%3Fb%3dc&&prefix=/recent/";
        assert_eq!(parse_text(BodyFormat::UrlEncoded, form), Ok(expected));
        for (form, body, soft) in [
            (BodyFormat::Json, r#"{"tags": ["a"], "soft": true}"#, true),
            (BodyFormat::Json, r#"{"tags": ["a"], "soft": false}"#, false),
            (BodyFormat::UrlEncoded, "tag=a&soft=1", true),
            (BodyFormat::UrlEncoded, "soft=true&tag=a", true),
            (BodyFormat::UrlEncoded, "soft=0&tag=a", false),
        ] {
            assert_eq!(parse_text(form, body).map(|purge| purge.soft), Ok(soft), "{body}");
        }
    }

    #[test]
    fn malformed_bodies_are_refused() {
        for (form, body, message) in [
            (BodyFormat::Json, "{}", "nothing is named"),
            (BodyFormat::Json, "", "EOF"),
            (BodyFormat::Json, r#"{"soft": true}"#, "nothing is named"),
            (BodyFormat::Json, r#"{"tags": ["a"], "soft": 1}"#, "expected a boolean"),
            (BodyFormat::UrlEncoded, "soft=yes&tag=a", "is not one of 1, true"),
            (BodyFormat::Json, r#"{"tag": ["a"]}"#, "unknown field `tag`"),
            (BodyFormat::Json, r#"{"tags": ["a b"]}"#, "no space"),
            (BodyFormat::Json, r#"{"keys": [""]}"#, "1 to 250"),
            (BodyFormat::UrlEncoded, "", "nothing is named"),
            (BodyFormat::UrlEncoded, "keys=/", "`keys` is not one of"),
            (BodyFormat::UrlEncoded, "key=%2", "two hexadecimal"),
            (BodyFormat::UrlEncoded, "key=%+1", "two hexadecimal"),
            (BodyFormat::UrlEncoded, "key=%ff", "no UTF-8"),
            (BodyFormat::UrlEncoded, "key=a+b", "no space"),
            (
                BodyFormat::UrlEncoded,
                "key=/&site=a.org",
                "no site has the name or the host `a.org`",
            ),
            (BodyFormat::Json, r#"{"keys": ["/"], "site": ""}"#, "no site has the name"),
        ] {
            let error = parse_text(form, body).unwrap_err();
            assert!(error.contains(message), "{body}: {error}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_parsed_without_a_panic(body in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = parse(BodyFormat::Json, &body, &SiteNames::default());
            let _ = parse(BodyFormat::UrlEncoded, &body, &SiteNames::default());
        }
    }
}
