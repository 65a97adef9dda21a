//! The application: its processes, their limits and their environment.

use toml::Value;

use crate::draft::Draft;
use crate::section::Section;
use crate::text::size;
use crate::uwsgi::options::UwsgiOption;

/// Makes the section of an application.
pub(crate) fn application(option: &UwsgiOption, script: &str, name: &str) -> Section {
    let mut app = Section::new("[[app]]");
    app.comment(option.place.to_string());
    app.set("name", name);
    app.set("load", script);
    // uWSGI has one process if the configuration does not say how many.
    app.set("workers", 1);
    app
}

/// Reads an option about processes and requests into all applications. Returns whether it is one.
pub(crate) fn app_option(option: &UwsgiOption, draft: &mut Draft) -> bool {
    let number = option.value.trim().parse::<i64>().ok().filter(|number| *number > 0);
    let value: Option<(&str, Value)> = match option.key.as_str() {
        "processes" | "workers" | "p" => number.map(|count| ("workers", count.into())),
        "max-requests" => number.map(|count| ("max_requests", count.into())),
        "harakiri" => number.map(|seconds| ("deadline", format!("{seconds}s").into())),
        "max-worker-lifetime" => number.map(|seconds| ("max_age", format!("{seconds}s").into())),
        "reload-on-rss" | "evil-reload-on-rss" => {
            number.map(|megabytes| ("max_memory", format!("{megabytes}MB").into()))
        }
        "limit-post" => {
            number.and_then(|bytes| Some(("body_limit", size(u64::try_from(bytes).ok()?).into())))
        }
        "lazy" | "lazy-apps" => truth(&option.value)
            .map(|lazy| ("preload", if lazy { Value::from(false) } else { Value::from("auto") })),
        "chdir" | "chdir2" => Some(("directory", option.value.clone().into())),
        "max-requests-delta" | "min-worker-lifetime" => {
            let text = "each worker draws up to a tenth less by itself";
            draft.notes.by_itself(&option.place, &option.directive(), text);
            return true;
        }
        "env" => return environment(option, draft),
        _ => return false,
    };
    match value {
        Some((key, value)) => {
            for app in &mut draft.apps {
                set(app, key, value.clone());
            }
            draft.notes.carried(&option.place, &option.directive(), "");
        }
        None => {
            let text = "the value is not a number that Kirin can take";
            draft.notes.left_out(&option.place, &option.directive(), text);
        }
    }
    true
}

/// Sets a key. A file that is named relative to the directory gets its complete path.
pub(crate) fn set(app: &mut Section, key: &str, value: Value) {
    if key == "directory"
        && let (Some(directory), Some(load)) =
            (value.as_str(), app.get("load").and_then(Value::as_str))
        && !load.starts_with('/')
        && !is_module(load)
    {
        let load = format!("{}/{load}", directory.trim_end_matches('/'));
        app.set("load", load);
    }
    app.set(key, value);
}

fn environment(option: &UwsgiOption, draft: &mut Draft) -> bool {
    let Some((name, value)) = option.value.split_once('=') else {
        draft.notes.left_out(&option.place, &option.directive(), "it has no `=`");
        return true;
    };
    add_variable(name.trim(), value.trim(), draft);
    draft.notes.carried(&option.place, &option.directive(), "");
    true
}

/// Sets an environment variable of all applications. `PYTHONPATH` is a list.
pub(crate) fn add_variable(name: &str, value: &str, draft: &mut Draft) {
    for app in &mut draft.apps {
        app.change_table("env", |env| {
            let value = match env.get(name).and_then(Value::as_str) {
                Some(before) if name == "PYTHONPATH" => format!("{before}:{value}"),
                _ => value.to_owned(),
            };
            env.insert(name.to_owned(), value.into());
        });
    }
}

/// Returns whether `load` is a Python module with a name, and no file.
fn is_module(load: &str) -> bool {
    load.split_once(':')
        .is_some_and(|(module, _)| !module.ends_with(".py") && !module.contains('/'))
}

/// Returns whether a switch is on.
pub(crate) fn truth(value: &str) -> Option<bool> {
    match value.trim().to_ascii_lowercase().as_str() {
        "true" | "1" | "yes" | "on" => Some(true),
        "false" | "0" | "no" | "off" => Some(false),
        _ => None,
    }
}
