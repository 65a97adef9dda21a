//! `settings`: times and sizes.

use toml::{Table, Value};

use crate::draft::Draft;
use crate::report::Place;
use crate::text::size;
use crate::unit::json::{Entry, Node};

/// What the settings say about routes.
#[derive(Debug, Default)]
pub(crate) struct RouteSettings {
    /// The largest body, for routes that pass it to a program.
    pub(crate) body_limit: Option<String>,
    /// Media types by extension, for routes of files.
    pub(crate) mime_types: Table,
}

/// Reads the settings.
pub(crate) fn settings(node: &Node, file: &str, draft: &mut Draft) -> RouteSettings {
    let mut found = RouteSettings::default();
    for entry in node.entries() {
        let place = Place { file: file.to_owned(), line: entry.line };
        match entry.key.as_str() {
            "http" => entry.node.entries().iter().for_each(|e| http(e, file, draft, &mut found)),
            "listen_threads" => match entry.node.count() {
                Some(count) => {
                    draft.top.set("threads", i64::try_from(count).unwrap_or(1));
                    draft.notes.carried(&place, "\"listen_threads\"", "");
                }
                None => draft.notes.unknown(&place, "\"listen_threads\""),
            },
            "js_module" => {
                let text = "njs is not there. Lua scripts answer what a route cannot say";
                draft.notes.left_out(&place, "\"js_module\"", text);
            }
            "telemetry" => {
                let text = "write `endpoint` in `[traces]` (docs/traces.md)";
                draft.notes.left_out(&place, "\"telemetry\"", text);
            }
            other => draft.notes.unknown(&place, &format!("\"{other}\"")),
        }
    }
    found
}

fn http(entry: &Entry, file: &str, draft: &mut Draft, found: &mut RouteSettings) {
    let place = Place { file: file.to_owned(), line: entry.line };
    let directive = format!("\"{}\": {}", entry.key, entry.node.summary());
    let key = match entry.key.as_str() {
        "header_read_timeout" => "head_timeout",
        "body_read_timeout" => "body_timeout",
        "send_timeout" => "write_timeout",
        "idle_timeout" => "keep_alive",
        "max_body_size" => {
            found.body_limit = entry.node.count().map(size);
            draft.notes.carried(&place, &directive, "On routes that pass requests on.");
            return;
        }
        "static" => {
            mime_types(&entry.node, &mut found.mime_types);
            draft.notes.carried(&place, &directive, "On routes of files.");
            return;
        }
        "discard_unsafe_fields" => {
            let text = "fields with other characters than letters, digits and `-` never pass";
            draft.notes.by_itself(&place, &directive, text);
            return;
        }
        "server_version" => {
            draft.notes.by_itself(&place, &directive, "`headers` of a route can set `Server`");
            return;
        }
        "log_route" => {
            let text = "`kirin explain` says which route a request meets";
            draft.notes.left_out(&place, &directive, text);
            return;
        }
        _ => {
            draft.notes.unknown(&place, &directive);
            return;
        }
    };
    let Some(seconds) = entry.node.count().filter(|seconds| *seconds > 0) else {
        draft.notes.left_out(&place, &directive, "write the time into the listeners");
        return;
    };
    for listener in &mut draft.listeners {
        listener.section.set(key, format!("{seconds}s"));
    }
    draft.notes.carried(&place, &directive, "");
}

/// Reads `static.mime_types`: media types with their extensions.
fn mime_types(node: &Node, types: &mut Table) {
    for entry in node.get("mime_types").map(Node::entries).unwrap_or_default() {
        for extension in entry.node.elements().iter().filter_map(Node::text) {
            if let Some(extension) = extension.strip_prefix('.') {
                types.insert(extension.to_owned(), Value::from(entry.key.as_str()));
            }
        }
    }
}
