//! `access_log` and `log_format`.

use toml::{Table, Value};

use super::directive::Directive;
use super::globals::Globals;
use super::scope::Scope;
use super::units::{text, texts};
use super::variables::{Part, field_name, only_variable, parts};

/// Returns the access log that holds in a block. Returns `None` if nothing says that there is one.
pub fn access_log<'a>(scope: &Scope<'a>, globals: &Globals<'a>) -> Option<Value> {
    let list = scope.list("access_log");
    let (first, others) = list.split_first()?;
    for other in others {
        globals.notes.left_out(other, "a response has one access log, and this is a further one");
    }
    if first.is_off() {
        globals.notes.carried(first, "");
        return Some(Value::Boolean(false));
    }
    let written = first.arg(0);
    let Some(path) = target(written) else {
        globals.notes.left_out(first, "the path of an access log has no variables");
        return None;
    };
    let mut table = Table::from_iter([("path".to_owned(), text(&path))]);
    let format = first.args.get(1).filter(|word| !word.contains('='));
    if let Some(name) = format.filter(|name| name.as_str() != "combined")
        && let Some(format) = format_of(name, globals)
    {
        table.insert("format".into(), text(format));
    }
    if let Some(condition) = first.option("if") {
        add_condition(&mut table, condition, first, globals);
    }
    if first.option("gzip").is_some() || first.has("gzip") {
        globals.notes.left_out(first, "an access log is not compressed while it is written");
    }
    let is_moved = path != written && !written.starts_with("syslog");
    globals.notes.carried(first, if is_moved { format!("as {path}") } else { String::new() });
    Some(if table.len() == 1 { text(path) } else { Value::Table(table) })
}

/// Returns where lines go, as Kirin writes it.
fn target(written: &str) -> Option<String> {
    if written.contains('$') {
        return None;
    }
    if let Some(options) = written.strip_prefix("syslog:") {
        let server = options.split(',').find_map(|option| option.strip_prefix("server="))?;
        return Some(match server.strip_prefix("unix:") {
            Some(path) => format!("syslog:unix:{path}"),
            None if server
                .rsplit_once(':')
                .is_some_and(|(_, port)| port.parse::<u16>().is_ok()) =>
            {
                format!("syslog:{server}")
            }
            None => format!("syslog:{server}:514"),
        });
    }
    Some(match written {
        "/dev/stdout" => "stdout".into(),
        "/dev/stderr" => "stderr".into(),
        path => match path.strip_prefix("/var/log/nginx/") {
            Some(name) => format!("/var/log/kirin/{name}"),
            None => path.to_owned(),
        },
    })
}

/// Returns a `log_format` as Kirin writes it.
fn format_of<'a>(name: &str, globals: &Globals<'a>) -> Option<String> {
    let directive = globals.named("log_format", name)?;
    if directive.option("escape") == Some("json") {
        let text = "Kirin's own JSON, with the keys of docs/access-log.md";
        globals.notes.carried(directive, text);
        return Some("json".into());
    }
    let texts = directive.args.iter().skip(1).filter(|arg| !arg.starts_with("escape="));
    let written: String = texts.map(String::as_str).collect();
    let mut format = String::new();
    for part in parts(&written) {
        match part {
            Part::Text(text) => {
                format.push_str(&text.replace('%', "%%").replace(['\n', '\r'], " "))
            }
            Part::Variable(name) => match directive_of(name) {
                Some(directive) => format.push_str(&directive),
                None => {
                    format.push('-');
                    globals
                        .notes
                        .left_out(directive, format!("a log has no `${name}`, so `-` is there"));
                }
            },
        }
    }
    globals.notes.carried(directive, "");
    Some(format)
}

/// Returns the directive of Apache's LogFormat for a variable.
fn directive_of(name: &str) -> Option<String> {
    let fixed = match name {
        "remote_addr" => "%h",
        "realip_remote_addr" => "%{c}a",
        "remote_user" => "%u",
        "time_local" => "%t",
        "time_iso8601" => "%{%Y-%m-%dT%H:%M:%S+00:00}t",
        "msec" => "%{end:msec}t",
        "request" => "%r",
        "request_method" => "%m",
        "request_uri" => "%{uri}k",
        "uri" | "document_uri" => "%U",
        "args" | "query_string" => "%q",
        "server_protocol" => "%H",
        "status" => "%s",
        "body_bytes_sent" => "%B",
        "bytes_sent" => "%B",
        "request_time" => "%{reqtime}k",
        "request_id" => "%{request_id}k",
        "request_length" => "%{bytes_in}k",
        "pid" => "%P",
        "host" | "server_name" => "%v",
        "server_port" => "%p",
        "upstream_addr" => "%{upstream}k",
        "upstream_response_time" => "%{upstream_time}k",
        "upstream_cache_status" => "%{cache}k",
        "ssl_protocol" => "%{tls}k",
        "request_completion" => "%{end}k",
        "http_host" => "%V",
        _ => "",
    };
    if !fixed.is_empty() {
        return Some(fixed.into());
    }
    let named = |start: &str| name.strip_prefix(start).filter(|rest| !rest.is_empty());
    if let Some(field) = named("http_") {
        return Some(format!("%{{{}}}i", field_name(field)));
    }
    if let Some(field) = named("sent_http_") {
        return Some(format!("%{{{}}}o", field_name(field)));
    }
    named("cookie_").map(|cookie| format!("%{{{cookie}}}C"))
}

/// Adds which requests get a line.
fn add_condition<'a>(
    table: &mut Table,
    condition: &'a str,
    directive: &'a Directive,
    globals: &Globals<'a>,
) {
    let map = only_variable(condition).and_then(|name| globals.named("map", name));
    let found = map.and_then(|map| {
        let found = match only_variable(map.arg(0)) {
            Some("status") => statuses(map).map(|list| ("status", list)),
            Some("request_uri" | "uri") => exceptions(map).map(|list| ("except", list)),
            _ => None,
        }?;
        globals.notes.carried(map, "");
        Some(found)
    });
    match found {
        Some((key, list)) => {
            table.insert(key.into(), texts(list));
        }
        None => globals.notes.left_out(
            directive,
            "all requests get a line: `status`, `slower_than`, `sample` and `except` choose some",
        ),
    }
}

/// Returns the classes of statuses that get a line.
fn statuses(map: &Directive) -> Option<Vec<String>> {
    let is_set = |value: &str| !matches!(value, "" | "0");
    let default = map.inside().iter().find(|entry| entry.name == "default");
    let default = default.is_some_and(|entry| is_set(entry.arg(0)));
    let mut chosen: Vec<(char, bool)> = ('1'..='5').map(|class| (class, default)).collect();
    for entry in map.inside().iter().filter(|entry| entry.name != "default") {
        let classes = entry.name.strip_prefix("~^")?;
        let classes: Vec<char> = match classes.strip_prefix('[') {
            Some(inner) => inner.split(']').next()?.chars().collect(),
            None => classes.chars().take(1).collect(),
        };
        if !classes.iter().all(char::is_ascii_digit) {
            return None;
        }
        for (_, is_chosen) in chosen.iter_mut().filter(|(class, _)| classes.contains(class)) {
            *is_chosen = is_set(entry.arg(0));
        }
    }
    Some(
        chosen
            .into_iter()
            .filter(|(_, is_chosen)| *is_chosen)
            .map(|(class, _)| format!("{class}xx"))
            .collect(),
    )
}

/// Returns the paths that get no line.
fn exceptions(map: &Directive) -> Option<Vec<String>> {
    let mut paths = Vec::new();
    for entry in map.inside() {
        match (entry.name.as_str(), entry.arg(0)) {
            ("default", "1") => {}
            (path, "0" | "") if path.starts_with('/') && !path.contains(['?', '*', '{', '%']) => {
                paths.push(format!("= {path}"));
            }
            _ => return None,
        }
    }
    Some(paths)
}
