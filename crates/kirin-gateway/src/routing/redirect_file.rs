//! The file of `redirects`: one redirect a line, `FROM`, `TO` and a status with tabs between them.
//!
//! Pure; read when the configuration is checked. All lines are read, so that a user sees all errors
//! at once.

use http::StatusCode;
use kirin_http::RequestPath;

use super::redirect::{is_target, redirect_status};
use super::redirect_table::{KeptParts, RedirectFrom, RedirectLine, RedirectTable, segments};

/// An error of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineError {
    /// The number of the line, from 1.
    pub number: u32,
    /// The line.
    pub line: String,
    /// What was found, and what is allowed.
    pub message: String,
}

/// Reads the file with this name and contents. Lines that begin with `#` are comments.
pub fn parse(name: &str, bytes: &[u8]) -> Result<RedirectTable, Vec<LineError>> {
    let mut table = RedirectTable::new(name);
    let mut errors = Vec::new();
    // Spreadsheets begin a file with a byte order mark.
    let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
    for (number, line) in (1..).zip(bytes.split(|byte| *byte == b'\n')) {
        let added = match std::str::from_utf8(line) {
            Err(_) => Err("the line is not UTF-8; write other bytes percent-encoded".to_owned()),
            Ok(line) if line.trim().is_empty() || line.starts_with('#') => continue,
            Ok(line) => parse_line(line, number).and_then(|(from, redirect)| {
                table.add(from, redirect).map_err(|first| {
                    format!("line {first} already has a redirect for the same requests")
                })
            }),
        };
        if let Err(message) = added {
            let line = String::from_utf8_lossy(line).trim_end().to_owned();
            errors.push(LineError { number, line, message });
        }
    }
    if errors.is_empty() { Ok(table) } else { Err(errors) }
}

fn parse_line(line: &str, number: u32) -> Result<(RedirectFrom, RedirectLine), String> {
    let fields: Vec<&str> = line.split('\t').map(str::trim).collect();
    let (from, to, status) = match fields.as_slice() {
        [from, to] => (*from, *to, ""),
        [from, to, status] => (*from, *to, *status),
        [_] => return Err("there is no tab: a line is `FROM`, a tab and `TO`".into()),
        fields => {
            let found = fields.len();
            return Err(format!(
                "{found} fields: a line has `FROM`, `TO` and perhaps a status, with one tab \
                 between them"
            ));
        }
    };
    let from_read = parse_from(from)?;
    let status = match status {
        "" => None,
        text => Some(parse_status(text)?),
    };
    let (target, kept) = parse_to(to, &from_read)?;
    Ok((from_read, RedirectLine { number, target: target.into(), status, kept }))
}

fn parse_from(text: &str) -> Result<RedirectFrom, String> {
    let refuse = |why: String| Err(format!("FROM `{text}`: {why}"));
    let (path, query) = match text.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (text, None),
    };
    if !path.starts_with('/') || text.contains('#') {
        return refuse("it must be a path of this site, such as `/old` or `/old?id=5`".into());
    }
    let (path, is_below) = match path.strip_suffix("/*") {
        Some(path) => (path, true),
        None => (path, false),
    };
    if path.contains('*') {
        return refuse("`*` may only be the last segment; `%2A` is the character".into());
    }
    if is_below && query.is_some() {
        return refuse("a line for everything below a path has no query".into());
    }
    if query.is_some_and(|query| !query.bytes().all(|byte| byte.is_ascii_graphic())) {
        return refuse("write the query as browsers send it, percent-encoded".into());
    }
    let parsed = match RequestPath::parse(if path.is_empty() { "/" } else { path }) {
        Ok(parsed) => parsed,
        Err(error) => return refuse(format!("the {error}")),
    };
    if is_below {
        let path = parsed.decoded();
        return Ok(RedirectFrom::Below(path.strip_suffix(b"/").unwrap_or(&path).to_vec()));
    }
    Ok(RedirectFrom::Exact { path: parsed.decoded().into_owned(), query: query.map(str::to_owned) })
}

fn parse_to(text: &str, from: &RedirectFrom) -> Result<(String, KeptParts), String> {
    let (target, keeps_rest) = match text.strip_suffix("/*") {
        Some("") => ("/", true),
        Some(target) => (target, true),
        None => (text, false),
    };
    let end = target.find(['?', '#']).unwrap_or(target.len());
    let (path, end) = target.split_at(end);
    let is_clean = |byte: u8| byte.is_ascii_graphic() && !b"\"<>\\^`|{}".contains(&byte);
    let is_complete = !end.is_empty();
    let is_good_end = end.bytes().all(is_clean) && end.matches('#').count() <= 1;
    if !is_target(path) || !path.bytes().all(is_clean) || !is_good_end {
        return Err(format!(
            "TO `{text}`: it must be `/PATH`, `http://HOST/…` or `https://HOST/…`, \
             percent-encoded, without `@` in host and path"
        ));
    }
    match (from, keeps_rest, is_complete) {
        (_, true, true) => Err(format!("TO `{text}`: a query or fragment has no `/*` behind it")),
        (RedirectFrom::Exact { .. }, true, false) => {
            Err(format!("TO `{text}`: it may end in `/*` only if FROM does"))
        }
        (RedirectFrom::Below(path), true, false) => {
            let segments = u32::try_from(segments(path)).unwrap_or(u32::MAX);
            Ok((target.to_owned(), KeptParts::RestAndQuery { segments }))
        }
        (_, false, true) | (RedirectFrom::Exact { query: Some(_), .. }, false, _) => {
            Ok((target.to_owned(), KeptParts::Nothing))
        }
        (_, false, false) => Ok((target.to_owned(), KeptParts::Query)),
    }
}

fn parse_status(text: &str) -> Result<StatusCode, String> {
    let status = text.parse().ok().and_then(|number| redirect_status(number).ok());
    status.ok_or_else(|| format!("status `{text}`: allowed are 301, 302, 303, 307 and 308"))
}

#[cfg(test)]
#[path = "redirect_file_tests.rs"]
mod tests;
