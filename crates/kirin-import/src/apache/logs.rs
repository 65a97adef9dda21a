//! Logs of requests: `CustomLog` and `LogFormat`.

use std::collections::HashMap;

use toml::{Table, Value};

use crate::apache::log_format::format;
use crate::apache::tree::Directive;
use crate::draft::Draft;
use crate::section::Section;
use crate::steps::Scope;
use crate::steps::effects::{Effect, Scoped};

/// Returns what the logs of directives add to all routes: the last one that Kirin can write.
pub(crate) fn log(directives: &[Directive], draft: &mut Draft) -> Option<Scoped> {
    let mut formats: HashMap<&str, &str> = HashMap::new();
    let mut log = None;
    for directive in directives {
        match directive.name.as_str() {
            "logformat" => {
                formats.insert(directive.argument(1), directive.argument(0));
                draft.notes.carried(&directive.place, &directive.line, "Where a log names it.");
            }
            "customlog" | "transferlog" => log = custom_log(directive, &formats, draft).or(log),
            _ => {}
        }
    }
    let mut keys = Section::default();
    keys.set("access_log", log?);
    Some(Scoped { scope: Scope::default(), effect: Effect::Keys(keys) })
}

fn custom_log(
    directive: &Directive,
    formats: &HashMap<&str, &str>,
    draft: &mut Draft,
) -> Option<Value> {
    let (place, line) = (&directive.place, &directive.line);
    let path = directive.argument(0);
    if path.starts_with('|') || path.starts_with("syslog") {
        let text = "write a path, `journald` or `syslog` (docs/access-log.md)";
        draft.notes.left_out(place, line, text);
        return None;
    }
    let name = directive.argument(1);
    let text = formats.get(name).copied().unwrap_or(name);
    let written = match name {
        "combined" | "" => "combined".to_owned(),
        "common" => "common".to_owned(),
        _ => match format(text) {
            Ok(written) if written.contains('%') => written,
            Ok(_) => "combined".to_owned(),
            Err(lacking) => {
                let text = format!("Kirin has no `{lacking}`: the log has the combined format");
                draft.notes.left_out(place, line, &text);
                return Some(Value::from(path));
            }
        },
    };
    if directive.arguments.len() > 2 {
        let text = "without its condition: write `status` or `except` (docs/access-log.md)";
        draft.notes.left_out(place, line, text);
    } else {
        draft.notes.carried(place, line, "");
    }
    if written == "combined" {
        return Some(Value::from(path));
    }
    Some(Value::Table(Table::from_iter([
        ("path".to_owned(), Value::from(path)),
        ("format".to_owned(), Value::from(written)),
    ])))
}
