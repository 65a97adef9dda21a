//! `applications`: those in Perl, Python and Ruby run in Kirin, all others stay servers of their
//! own.

use toml::{Table, Value};

use crate::draft::Draft;
use crate::language::Language;
use crate::report::Place;
use crate::section::Section;
use crate::unit::json::{Entry, Json, Node};
use crate::unit::python;
use crate::unit::targets::Targets;

/// Reads an application.
pub(crate) fn application(entry: &Entry, place: &Place, draft: &mut Draft, targets: &mut Targets) {
    let kind = entry.node.get("type").and_then(Node::text).unwrap_or_default();
    let language = kind.split([' ', '-']).next().unwrap_or_default();
    match language {
        "perl" => in_workers(entry, Language::Perl, place, draft, targets),
        "python" => in_workers(entry, Language::Python, place, draft, targets),
        "ruby" => in_workers(entry, Language::Ruby, place, draft, targets),
        _ => other(entry, language, place, draft, targets),
    }
}

/// Adds an application that runs in workers of Kirin. One with `targets` becomes an `[[app]]` for
/// each of them.
fn in_workers(
    entry: &Entry,
    language: Language,
    place: &Place,
    draft: &mut Draft,
    targets: &mut Targets,
) {
    let app = settings(entry, language, place, draft);
    let pass = format!("applications/{}", entry.key);
    let of_targets = entry.node.get("targets").map(Node::entries).unwrap_or_default();
    let parts: Vec<_> = match of_targets {
        [] => vec![(entry.key.clone(), pass, &entry.node)],
        _ => of_targets
            .iter()
            .map(|of| (format!("{}-{}", entry.key, of.key), format!("{pass}/{}", of.key), &of.node))
            .collect(),
    };
    let directory = entry.node.get("working_directory").and_then(Node::text);
    for (wanted, pass, node) in parts {
        let mut app = app.clone();
        let name = draft.app_names.take(&wanted);
        app.set("name", name.as_str());
        let load = match language {
            Language::Perl | Language::Ruby => {
                node.get("script").and_then(Node::text).map(|it| joined(directory, it))
            }
            Language::Python => python::load(node),
        };
        app.set(
            "load",
            load.unwrap_or_else(|| {
                let (key, file) = match language {
                    Language::Perl => ("script", joined(directory, "app.psgi")),
                    Language::Ruby => ("script", joined(directory, "config.ru")),
                    Language::Python => ("module", "app:application".to_owned()),
                };
                let text = format!("it has no `{key}`: write what Kirin shall load into `load`");
                draft.notes.left_out(place, &format!("\"{wanted}\""), &text);
                file
            }),
        );
        if language == Language::Python {
            python::add_variables(node, &mut app);
        }
        draft.apps.push(app);
        targets.add(pass, format!("app:{name}"));
    }
}

/// Reads the keys that are the same for all targets of an application.
fn settings(entry: &Entry, language: Language, place: &Place, draft: &mut Draft) -> Section {
    let at = |line| Place { file: place.file.clone(), line };
    let mut app = Section::new("[[app]]");
    app.comment(place.to_string());
    // They are written first.
    app.set("name", "");
    app.set("load", "");
    for key in entry.node.entries() {
        let directive = format!("\"{}\": {}", key.key, key.node.summary());
        let place = at(key.line);
        match (key.key.as_str(), key.node.text()) {
            ("type", _) => draft.notes.carried(&place, &directive, ""),
            ("script", Some(_)) if language != Language::Python => {
                draft.notes.carried(&place, &directive, "");
            }
            ("hooks", _) if language == Language::Ruby => {
                let text = "write its hooks into config/kirin.rb (docs/ruby.md)";
                draft.notes.left_out(&place, &directive, text);
            }
            (key, _) if language == Language::Python && python::KEYS.contains(&key) => {
                draft.notes.carried(&place, &directive, "");
            }
            ("protocol", _) if language == Language::Python => {
                draft.notes.by_itself(&place, &directive, "Kirin sees it by the application");
            }
            ("working_directory", Some(directory)) => {
                app.set("directory", directory);
                draft.notes.carried(&place, &directive, "");
            }
            ("processes", _) => processes(&key.node, &directive, &place, &mut app, draft),
            ("environment", _) => {
                app.change_table("env", |env| env.extend(environment(&key.node)));
                draft.notes.carried(&place, &directive, "");
            }
            ("limits", _) => limits(key, place, &mut app, draft),
            ("user", Some(user)) => set_user(user, &directive, &place, draft),
            ("group", _) => draft.notes.left_out(&place, &directive, "Kirin takes the user's own"),
            ("threads" | "thread_stack_size", _) => {
                let text = "a worker of Kirin serves one request at a time: raise `workers`";
                draft.notes.left_out(&place, &directive, text);
            }
            ("isolation", _) => {
                let text = "PROTECTION NOT CARRIED OVER: Kirin has no namespaces. Use those of \
                            a systemd unit (docs/deploy.md)";
                draft.notes.left_out(&place, &directive, text);
            }
            ("stdout" | "stderr", _) => {
                draft.notes.by_itself(&place, &directive, "errors go to the log of Kirin");
            }
            _ => draft.notes.unknown(&place, &directive),
        }
    }
    if language == Language::Python {
        python::add_variables(&entry.node, &mut app);
    }
    app
}

fn joined(directory: Option<&str>, script: &str) -> String {
    match directory {
        Some(directory) if !script.starts_with('/') => {
            format!("{}/{script}", directory.trim_end_matches('/'))
        }
        _ => script.to_owned(),
    }
}

fn processes(node: &Node, directive: &str, place: &Place, app: &mut Section, draft: &mut Draft) {
    let most = node.count().or_else(|| node.get("max").and_then(Node::count));
    let Some(most) = most.filter(|most| *most > 0) else {
        draft.notes.left_out(place, directive, "write the number of `workers`");
        return;
    };
    app.set("workers", i64::try_from(most).unwrap_or(5));
    let dynamic = matches!(node.value, Json::Object(_));
    let text = if dynamic { "Kirin always runs as many as `max` says." } else { "" };
    draft.notes.carried(place, directive, text);
}

fn environment(node: &Node) -> Table {
    let entries = node.entries().iter();
    let pair = |entry: &Entry| Some((entry.key.clone(), Value::from(entry.node.text()?)));
    entries.filter_map(pair).collect()
}

fn limits(entry: &Entry, place: Place, app: &mut Section, draft: &mut Draft) {
    for key in entry.node.entries() {
        let place = Place { line: key.line, ..place.clone() };
        let directive = format!("\"{}\": {}", key.key, key.node.summary());
        let count = key.node.count().filter(|count| *count > 0);
        match (key.key.as_str(), count) {
            ("timeout", Some(seconds)) => app.set("deadline", format!("{seconds}s")),
            ("requests", Some(count)) => {
                app.set("max_requests", i64::try_from(count).unwrap_or(0));
            }
            _ => {
                draft.notes.unknown(&place, &directive);
                continue;
            }
        }
        draft.notes.carried(&place, &directive, "");
    }
}

/// Sets the user of the complete program. Kirin and its applications have one.
fn set_user(user: &str, directive: &str, place: &Place, draft: &mut Draft) {
    match draft.top.get("user").and_then(Value::as_str) {
        None => {
            draft.top.set("user", user);
            draft.notes.carried(place, directive, "Kirin itself and all applications run as it.");
        }
        Some(same) if same == user => draft.notes.carried(place, directive, ""),
        Some(_) => {
            let text = "PROTECTION NOT CARRIED OVER: all applications of a Kirin run as one \
                        user. Run a second Kirin for this one";
            draft.notes.left_out(place, directive, text);
        }
    }
}

/// Leaves out an application in another language. Its routes lead to an upstream, in which the
/// address of its own server must be written.
fn other(entry: &Entry, language: &str, place: &Place, draft: &mut Draft, targets: &mut Targets) {
    let directive = format!("\"{}\": {{\"type\": \"{language}\", …}}", entry.key);
    let advice = match language {
        "php" => "run it in php-fpm, and write its socket into `servers` (docs/proxy.md)",
        "wasm" | "wasm-wasi-component" => {
            "Kirin runs no WebAssembly: run it in a server of its \
                                           own, and write its address into `servers`"
        }
        _ => "let it listen for HTTP itself, and write its address into `servers`",
    };
    draft.notes.left_out(place, &directive, advice);
    let pass = format!("applications/{}", entry.key);
    if entry.node.get("targets").is_none() {
        let own = upstream(&entry.node, language, place);
        let name = targets.upstreams.add_own(&entry.key, own);
        targets.add(pass.clone(), format!("proxy:{name}"));
    }
    let of_targets = entry.node.get("targets").map(Node::entries).unwrap_or_default();
    for target in of_targets {
        let mut keys = upstream(&target.node, language, place);
        if let Some(comment) = keys.comments.first_mut() {
            comment.push_str(&format!(", target {}", crate::draft::one_line(&target.key)));
        }
        let wanted = format!("{}-{}", entry.key, target.key);
        let name = targets.upstreams.add_own(&wanted, keys);
        targets.add(format!("{pass}/{}", target.key), format!("proxy:{name}"));
    }
}

fn upstream(node: &Node, language: &str, place: &Place) -> Section {
    let mut keys = Section::default();
    keys.comment(place.to_string());
    keys.comment("Write the address at which the application will listen.");
    if language == "php" {
        keys.set("servers", vec!["fastcgi://unix:/run/php/php-fpm.sock"]);
        let root = node.get("root").and_then(Node::text).unwrap_or("/srv/www");
        keys.set("root", root);
        if let Some(script) = node.get("script").or(node.get("index")).and_then(Node::text) {
            keys.set("index", script);
        }
    } else {
        keys.set("servers", vec!["127.0.0.1:3000"]);
    }
    keys
}
