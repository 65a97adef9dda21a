//! Placeholders of Caddy: `{host}`, `{http.request.header.X-A}` and others.

use crate::text::VARIABLE;

/// Returns a text as a value of Kirin that may have variables, or the placeholder that Kirin lacks.
pub(crate) fn template(text: &str) -> Result<String, String> {
    let mut written = String::new();
    let mut rest = text;
    while let Some(start) = rest.find('{') {
        let (before, behind) = rest.split_at(start);
        written.push_str(before);
        // A placeholder ends before the next brace that opens one.
        let inner = behind.get(1..).unwrap_or_default();
        let end = inner
            .find(['{', '}'])
            .filter(|end| inner.get(*end..).is_some_and(|end| end.starts_with('}')));
        let Some(end) = end else {
            written.push_str("{{");
            rest = inner;
            continue;
        };
        let (placeholder, after) = behind.split_at(end + 2);
        if before.ends_with(VARIABLE) {
            written.push_str(placeholder);
        } else {
            let name = placeholder.trim_matches(['{', '}']);
            match variable(name) {
                Some(variable) => written.push_str(&format!("{{{variable}}}")),
                None if is_name(name) => return Err(placeholder.to_owned()),
                None => {
                    written.push_str("{{");
                    rest = behind.get(1..).unwrap_or_default();
                    continue;
                }
            }
        }
        rest = after;
    }
    written.push_str(rest);
    Ok(written)
}

/// Returns whether a text has a placeholder that Kirin lacks or reads otherwise.
pub(crate) fn has_placeholder(text: &str) -> bool {
    text.replace(&format!("{VARIABLE}{{"), "").contains('{')
}

fn is_name(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "._-*[]:".contains(c);
    name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.chars().all(is_part)
}

/// Returns the variable of Kirin for a placeholder.
fn variable(name: &str) -> Option<String> {
    let name = name.strip_prefix("http.request.").unwrap_or(name);
    let found = match name {
        "host" => "host",
        "path" | "uri" | "uri.path" | "orig_uri" | "orig_uri.path" | "orig_path" => "path",
        "remote" | "remote_host" | "remote.host" | "client_ip" | "http.vars.client_ip" => "client",
        "scheme" => "scheme",
        "uuid" | "http.request.uuid" => "request_id",
        "http.auth.user.id" => "user",
        _ => {
            let field = |prefix: &str, kind: &str| {
                let name = name.strip_prefix(prefix)?;
                let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
                let good = !name.is_empty() && name.chars().all(plain);
                good.then(|| format!("{kind}.{name}"))
            };
            return field("header.", "header")
                .or_else(|| field("cookie.", "cookie"))
                .or_else(|| field("query.", "query"))
                .or_else(|| field("uri.query.", "query"));
        }
    };
    Some(found.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_variables() {
        for (text, expected) in [
            ("{host}{uri}", Ok("{host}{path}")),
            ("{http.request.header.X-A}", Ok("{header.X-A}")),
            ("{\"a\": 1}", Ok("{{\"a\": 1}")),
            ("\u{F8FF}{NAME} {", Ok("\u{F8FF}{NAME} {{")),
            ("{tls_cipher}", Err("{tls_cipher}")),
        ] {
            let expected = expected.map(str::to_owned).map_err(str::to_owned);
            assert_eq!(template(text), expected, "{text}");
        }
    }
}
