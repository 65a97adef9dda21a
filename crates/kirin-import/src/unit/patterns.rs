//! Patterns of Unit: `*`, `~` and the notations of addresses, in Kirin's words.

#[cfg(test)]
use crate::steps::PathPattern;
use crate::steps::{PathRead, is_host, network};

/// Reads a pattern of `uri`.
pub(crate) fn path(pattern: &str) -> PathRead {
    match pattern.strip_prefix('~') {
        Some(expression) => PathRead::of_expression(pattern, expression),
        None => PathRead::of_stars(pattern),
    }
}

/// Reads a pattern of `host`.
pub(crate) fn host(pattern: &str) -> Result<String, String> {
    if pattern.starts_with('!') {
        return Err(format!("`{pattern}`: Kirin has no host that must not match"));
    }
    if pattern.starts_with('~') {
        return Err(format!("`{pattern}`: write a site with this expression in `hosts`"));
    }
    let pattern = without_port(pattern).to_ascii_lowercase();
    if !is_host(&pattern) {
        return Err(format!("`{pattern}`: Kirin has names, `*.name` and `name.*`"));
    }
    Ok(pattern)
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit() || b == b'*') => name,
        _ => host,
    }
}

/// Reads a pattern of `source`: an address, a network or `unix`.
pub(crate) fn client(pattern: &str) -> Result<String, String> {
    if pattern == "unix" {
        return Ok("unix:".to_owned());
    }
    if let Some(network) = network(pattern) {
        return Ok(network);
    }
    Err(format!(
        "`{pattern}`: Kirin has addresses and networks such as `10.0.0.0/8`, without \
                 ranges and ports"
    ))
}

/// Reads the pattern of a value of a field, an argument or a cookie.
pub(crate) fn value(pattern: &str) -> Result<String, String> {
    if pattern.starts_with('~') {
        return Err(format!("`{pattern}`: Kirin has no regular expressions for values"));
    }
    let inner = pattern.strip_prefix('*').unwrap_or(pattern);
    let inner = inner.strip_suffix('*').unwrap_or(inner);
    if inner.contains('*') {
        return Err(format!("`{pattern}`: Kirin has `*` only at the beginning and the end"));
    }
    Ok(pattern.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pattern: &str) -> String {
        let read = path(pattern);
        let paths: Vec<_> = read.paths.iter().map(PathPattern::to_string).collect();
        let problem = if read.problem.is_some() { "?" } else { "" };
        let remark = if read.remark.is_some() { "~" } else { "" };
        format!("{}{problem}{remark}", paths.join(" "))
    }

    #[test]
    fn patterns_of_paths_are_those_of_kirin() {
        for (pattern, expected) in [
            ("/", "= /"),
            ("*", "/"),
            ("/*", "/"),
            ("/docs/*", "/docs"),
            ("/docs*", "/docs~"),
            ("*.php", "*.php"),
            ("*.php/*", "*.php~"),
            ("/docs/*.pdf", "/docs/*.pdf"),
            ("/a/*/b", "/a?"),
            ("~^/blog/(\\d+)", "/blog?"),
            ("~\\.git", "?"),
            ("/a{b}", "?"),
        ] {
            assert_eq!(read(pattern), expected, "{pattern}");
        }
    }

    #[test]
    fn addresses_without_ranges_and_ports_are_clients() {
        assert_eq!(client("unix"), Ok("unix:".into()));
        assert_eq!(client("2001:db8::/32"), Ok("2001:db8::/32".into()));
        for pattern in ["10.0.0.1-10.0.0.9", "10.0.0.1:80", "10.0.0.0/33", "*:80"] {
            assert!(client(pattern).is_err(), "{pattern}");
        }
    }
}
