//! Regular expressions of conditions on hosts, methods, cookies and fields.

use toml::Value;

use crate::steps::{Scope, is_host};

/// Returns an expression without what it says about the query.
pub(super) fn without_query(expression: &str) -> String {
    let ends = [
        "(\\?.*)?$",
        "(\\?.*|)$",
        "(\\?|$)",
        "($|\\?)",
        "(\\?[a-z0-9]+)?$",
        "(\\?[a-zA-Z0-9\\=\\.\\-]+)?$",
    ];
    let found = ends.iter().find_map(|end| expression.strip_suffix(end));
    found.map_or_else(|| expression.to_owned(), |rest| format!("{rest}$"))
}

pub(super) fn methods(text: &str, is_match: bool) -> Option<Vec<Value>> {
    let text = if is_match {
        let inner = text.strip_prefix("^(")?.strip_suffix(")$")?;
        inner.to_owned()
    } else {
        text.to_owned()
    };
    let plain = |method: &str| !method.is_empty() && method.bytes().all(|b| b.is_ascii_uppercase());
    text.split('|').map(|method| plain(method).then(|| Value::from(method))).collect()
}

/// Reads `^(www\.)?example\.com$`, `example.com` of `==`, and a port at the end.
pub(super) fn host(text: &str, is_match: bool) -> Option<Scope> {
    let plain =
        |name: &str| (!name.contains('*') && is_host(name)).then(|| name.to_ascii_lowercase());
    let hosts = if is_match {
        let text = text.strip_prefix("(?i)").unwrap_or(text);
        let text = text.strip_prefix('^')?;
        let text =
            ["(:[0-9]+)?$", "(:\\d+)?$", "$"].iter().find_map(|end| text.strip_suffix(end))?;
        let (optional, name) = match text.strip_prefix("(www\\.)?").or(text.strip_prefix("(www.)?"))
        {
            Some(name) => (true, name),
            None => (false, text),
        };
        let name = plain(&name.replace("\\.", "."))?;
        let www = optional.then(|| format!("www.{name}"));
        www.into_iter().chain([name]).collect()
    } else {
        vec![plain(text)?]
    };
    Some(Scope { hosts, ..Scope::default() })
}

/// Returns the names of an expression such as `(a|b)=` on cookies.
pub(super) fn names(expression: &str) -> Option<Vec<String>> {
    let text = expression.strip_prefix('^').unwrap_or(expression);
    let text = text.strip_suffix('$').unwrap_or(text);
    let text = text.strip_suffix('=').unwrap_or(text);
    let text = text.strip_prefix('(').and_then(|text| text.strip_suffix(')')).unwrap_or(text);
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let good = |name: &str| (!name.is_empty() && name.chars().all(plain)).then(|| name.to_owned());
    text.split('|').map(good).collect()
}

/// Returns an expression on a field as a value of `match`.
pub(super) fn pattern(expression: &str) -> Option<String> {
    let (start, rest) = expression.strip_prefix('^').map_or(("*", expression), |rest| ("", rest));
    let (end, text) = rest.strip_suffix('$').map_or(("*", rest), |text| ("", text));
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_ /:;=,".contains(c);
    text.chars().all(plain).then(|| format!("{start}{text}{end}"))
}
