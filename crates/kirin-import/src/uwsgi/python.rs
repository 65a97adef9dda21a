//! An application in Python: what is loaded, and where Python finds it.

use crate::draft::Draft;
use crate::uwsgi::application::add_variable;
use crate::uwsgi::options::UwsgiOption;

/// The options that `load` of an `[[app]]` says together.
const LOADED: [&str; 5] = ["wsgi-file", "file", "module", "wsgi", "callable"];

/// Returns the option that names an application in Python, and the value of `load`. `None` if there
/// is none, or one that Kirin cannot load.
pub(crate) fn application(options: &[UwsgiOption]) -> Option<(&UwsgiOption, String)> {
    let named = |keys: &[&str]| {
        options.iter().find(|option| keys.contains(&option.key.as_str()) && !option.conditional)
    };
    let callable = named(&["callable"]).map(|option| option.value.trim());
    if let Some(option) = named(&["wsgi-file", "file"]) {
        let file = option.value.trim();
        // Kirin knows a file in Python by its name.
        return file.ends_with(".py").then(|| match callable {
            Some(callable) => (option, format!("{file}:{callable}")),
            None => (option, file.to_owned()),
        });
    }
    let option = named(&["module", "wsgi"])?;
    let module = option.value.trim();
    let load = match module.contains(':') {
        true => module.to_owned(),
        false => format!("{module}:{}", callable.unwrap_or("application")),
    };
    Some((option, load))
}

/// Reads an option of Python into all applications. Returns whether it is one.
pub(crate) fn option(option: &UwsgiOption, draft: &mut Draft) -> bool {
    match option.key.as_str() {
        key if LOADED.contains(&key) => {}
        "home" | "virtualenv" | "venv" | "pyhome" => {
            add_variable("VIRTUAL_ENV", option.value.trim(), draft);
        }
        "pythonpath" | "python-path" | "pp" => {
            add_variable("PYTHONPATH", option.value.trim(), draft);
        }
        "pyargv" => {
            let text = "a worker has no arguments: let the application read variables of `env`";
            draft.notes.left_out(&option.place, &option.directive(), text);
            return true;
        }
        _ => return false,
    }
    draft.notes.carried(&option.place, &option.directive(), "");
    true
}
