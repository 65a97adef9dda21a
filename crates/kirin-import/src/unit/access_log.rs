//! `access_log`: the log and its format.

use toml::{Table, Value};

use crate::draft::Draft;
use crate::report::Place;
use crate::unit::json::{Json, Node};
use crate::unit::variables::{Part, parts};

/// Writes the access log into all listeners.
pub(crate) fn access_log(node: &Node, place: &Place, draft: &mut Draft) {
    let Some(path) = node.text().or_else(|| node.get("path").and_then(Node::text)) else {
        draft.notes.left_out(place, "access_log", "it has no `path`");
        return;
    };
    let mut log = Value::from(path);
    let format = node.get("format");
    match format.map(|format| format.text().map(directives)) {
        None => {}
        Some(Some(Ok(directives))) => {
            log = Value::Table(Table::from_iter([
                ("path".to_owned(), Value::from(path)),
                ("format".to_owned(), Value::from(directives)),
            ]));
        }
        Some(Some(Err(name))) => draft.notes.left_out(
            place,
            "format",
            &format!(
                "Kirin has no value for `${name}`: write a format (docs/access-log.md). The \
                      lines have the combined format."
            ),
        ),
        Some(None) => {
            let json = format.is_some_and(|format| matches!(format.value, Json::Object(_)));
            let text = if json {
                "write `format = \"json\"`, which has keys of its own (docs/access-log.md)"
            } else {
                "it is no text"
            };
            draft.notes.left_out(place, "format", text);
        }
    }
    if node.get("if").is_some() {
        let text = "write `status`, `slower_than`, `sample` or `except` (docs/access-log.md)";
        draft.notes.left_out(place, "if", text);
    }
    draft.notes.carried(place, "access_log", "in each listener");
    for listener in &mut draft.listeners {
        listener.section.set("access_log", log.clone());
    }
}

/// Returns the directives of Kirin for a format of Unit, or the variable that Kirin lacks.
fn directives(format: &str) -> Result<String, &str> {
    let mut written = String::new();
    for part in parts(format) {
        match part {
            Part::Text(text) => written.push_str(&text.replace('%', "%%")),
            Part::Variable("dollar") => written.push('$'),
            Part::Variable(name) => written.push_str(&directive(name).ok_or(name)?),
        }
    }
    Ok(written.replace("[%{%d/%b/%Y:%H:%M:%S +0000}t]", "%t"))
}

fn directive(name: &str) -> Option<String> {
    let found = match name {
        "remote_addr" => "%h",
        "time_local" => "%{%d/%b/%Y:%H:%M:%S +0000}t",
        "request_line" => "%r",
        "status" => "%s",
        "body_bytes_sent" => "%B",
        "method" => "%m",
        "host" => "%v",
        "uri" => "%U",
        "request_uri" => "%{uri}k",
        "request_time" => "%{reqtime}k",
        "request_id" => "%{request_id}k",
        _ => {
            let field = |prefix, letter| {
                let name = name.strip_prefix(prefix).filter(|name: &&str| !name.is_empty())?;
                let name = if letter == 'C' { name.to_owned() } else { name.replace('_', "-") };
                Some(format!("%{{{name}}}{letter}"))
            };
            return field("header_", 'i')
                .or_else(|| field("response_header_", 'o'))
                .or_else(|| field("cookie_", 'C'));
        }
    };
    Some(found.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_format_of_unit_has_directives() {
        let format = "$remote_addr - - [$time_local] \"$request_line\" $status $body_bytes_sent \
                      \"$header_referer\" \"$header_user_agent\"";
        assert_eq!(
            directives(format),
            Ok(r#"%h - - [%{%d/%b/%Y:%H:%M:%S +0000}t] "%r" %s %B "%{referer}i" "%{user-agent}i""#
                .replace("[%{%d/%b/%Y:%H:%M:%S +0000}t]", "%t"))
        );
        assert_eq!(directives("$arg_a"), Err("arg_a"));
    }
}
