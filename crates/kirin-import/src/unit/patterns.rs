//! Patterns of Unit: `*`, `~` and the notations of addresses, in Kirin's words.

use std::net::IpAddr;

use crate::steps::PathPattern;

/// What Kirin has for a pattern of a path.
#[derive(Debug, Default)]
pub(crate) struct PathRead {
    pub(crate) paths: Vec<PathPattern>,
    /// Why the paths are not those of the pattern. They are more then, or there are none.
    pub(crate) problem: Option<String>,
    /// What differs in small things.
    pub(crate) remark: Option<String>,
}

/// Reads a pattern of `uri`.
pub(crate) fn path(pattern: &str) -> PathRead {
    if let Some(expression) = pattern.strip_prefix('~') {
        let start = literal_start(expression.strip_prefix('^').unwrap_or_default(), true);
        let problem = format!("`{pattern}`: Kirin has no regular expressions for paths");
        return wider(start, problem);
    }
    let stars = pattern.matches('*').count();
    let found = match (stars, pattern.strip_suffix('*'), pattern.strip_prefix('*')) {
        (0, ..) => PathPattern::exact(pattern),
        (1, Some("" | "/"), _) => Some(PathPattern::everything()),
        (1, Some(start), _) => return below(pattern, start),
        (1, _, Some(end)) => PathPattern::ending("/", end),
        (1, ..) => {
            let (start, end) = pattern.split_once('*').unwrap_or_default();
            start.strip_suffix('/').and_then(|start| PathPattern::ending(start, end))
        }
        // `*.php/*` is the path of a script with a rest, which Kirin finds itself.
        (2, Some(start), Some(_)) => {
            let script = start.strip_prefix('*').and_then(|text| text.strip_suffix('/'));
            script.and_then(|end| PathPattern::ending("/", end))
        }
        _ => None,
    };
    match found {
        Some(found) => PathRead { paths: vec![found], ..PathRead::default() },
        None => {
            let start = literal_start(pattern, false);
            wider(start, format!("`{pattern}`: Kirin has `*` only for the end of a name"))
        }
    }
}

/// Reads `/docs/*` and `/docs*`.
fn below(pattern: &str, start: &str) -> PathRead {
    let Some(found) = PathPattern::below(start) else {
        return wider(None, format!("`{pattern}`: Kirin cannot write this path"));
    };
    let remark = (!start.ends_with('/')).then(|| {
        format!(
            "`{pattern}`: in Kirin a path has whole segments, so names that only begin so are \
                 not among them. If the step refuses clients, protection is not carried over for \
                 such names"
        )
    });
    PathRead { paths: vec![found], problem: None, remark }
}

/// Returns the directory that all paths of a pattern are in.
fn wider(directory: Option<PathPattern>, problem: String) -> PathRead {
    PathRead { paths: directory.into_iter().collect(), problem: Some(problem), remark: None }
}

/// Returns the directory that a pattern or an expression begins with, unless that is the root.
fn literal_start(text: &str, expression: bool) -> Option<PathPattern> {
    let special = |c: char| {
        if expression {
            !c.is_ascii_alphanumeric() && !matches!(c, '/' | '-' | '_')
        } else {
            c == '*'
        }
    };
    let end = text.find(special).unwrap_or(text.len());
    let (directory, _) = text.get(..end)?.rsplit_once('/')?;
    let whole = text.get(..end).filter(|_| end == text.len());
    let directory = whole.unwrap_or(directory);
    PathPattern::below(directory).filter(|path| *path != PathPattern::everything())
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
    let name = pattern.strip_prefix("*.").unwrap_or(&pattern);
    let name = if name == pattern { name.strip_suffix(".*").unwrap_or(name) } else { name };
    if name.contains(['*', '/', ' ']) || name.is_empty() {
        return Err(format!("`{pattern}`: Kirin has `*.name` and `name.*`"));
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
    if is_network(pattern) {
        return Ok(pattern.to_owned());
    }
    Err(format!(
        "`{pattern}`: Kirin has addresses and networks such as `10.0.0.0/8`, without \
                 ranges and ports"
    ))
}

/// Returns whether a text is an address or a network.
pub(crate) fn is_network(text: &str) -> bool {
    let (address, bits) = text.split_once('/').unwrap_or((text, "0"));
    let most = match address.parse() {
        Ok(IpAddr::V4(_)) => 32,
        Ok(IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    bits.parse::<u8>().is_ok_and(|bits| bits <= most)
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
            ("*.php/*", "*.php"),
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
