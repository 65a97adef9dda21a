//! The keys of an application in Python: what is loaded, and where Python finds it.

use crate::section::Section;
use crate::unit::json::{Json, Node};

/// The keys that `load` and `env` of an `[[app]]` say together.
pub(crate) const KEYS: [&str; 6] = ["module", "callable", "factory", "path", "home", "targets"];

/// Returns the value of `load`: `module:callable`. The callable of NGINX Unit is `application`
/// unless it has a name.
pub(crate) fn load(node: &Node) -> Option<String> {
    let module = node.get("module")?.text()?;
    let callable = node.get("callable").and_then(Node::text).unwrap_or("application");
    let is_factory = matches!(node.get("factory").map(|node| &node.value), Some(Json::Bool(true)));
    Some(format!("{module}:{callable}{}", if is_factory { "()" } else { "" }))
}

/// Adds to `env` the directories in which Python looks for modules, and its virtual environment.
pub(crate) fn add_variables(node: &Node, app: &mut Section) {
    let directories = node.get("path").map(Node::elements).unwrap_or_default();
    let directories: Vec<_> = directories.iter().filter_map(Node::text).collect();
    let path = (!directories.is_empty()).then(|| directories.join(":"));
    let home = node.get("home").and_then(Node::text).map(str::to_owned);
    for (name, value) in [("PYTHONPATH", path), ("VIRTUAL_ENV", home)] {
        if let Some(value) = value {
            app.change_table("env", |env| drop(env.insert(name.to_owned(), value.into())));
        }
    }
}
