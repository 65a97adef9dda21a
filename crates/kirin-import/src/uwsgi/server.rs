//! An application that Kirin cannot run: it stays in uWSGI, and Kirin passes requests to it.

use crate::draft::Draft;
use crate::report::Place;
use crate::section::Section;
use crate::uwsgi::listeners::address;
use crate::uwsgi::options::UwsgiOption;

/// The options that name an application which is not in Perl.
const APPLICATIONS: [&str; 22] = [
    "wsgi",
    "wsgi-file",
    "module",
    "callable",
    "paste",
    "paste-logger",
    "pythonpath",
    "pp",
    "home",
    "virtualenv",
    "venv",
    "pyargv",
    "mount",
    "rack",
    "rails",
    "rbrequire",
    "rvm-path",
    "gemset",
    "php-docroot",
    "php-index",
    "lua",
    "python-path",
];

/// Returns whether an option names an application which is not in Perl.
pub(crate) fn is_application(key: &str) -> bool {
    APPLICATIONS.contains(&key) || key.starts_with("py-") || key.starts_with("php-")
}

/// Adds the upstream of the uWSGI that has the application. Returns its place, and a comment.
pub(crate) fn other_server(
    options: &[UwsgiOption],
    name: &str,
    start: &Place,
    draft: &mut Draft,
) -> (String, String) {
    let is_socket = |option: &&UwsgiOption| {
        matches!(option.key.as_str(), "socket" | "uwsgi-socket") && !option.conditional
    };
    let socket = options.iter().find(is_socket);
    let found = socket.and_then(|option| address(&option.value));
    let found = found.map(|address| address.replace("*:", "127.0.0.1:"));
    let mut keys = Section::default();
    keys.comment(start.to_string());
    if found.is_none() {
        keys.comment("Write `socket = 127.0.0.1:3031` into the file of uWSGI, in place of `http`.");
    }
    let server = found.unwrap_or_else(|| "127.0.0.1:3031".to_owned());
    keys.set("servers", vec![format!("uwsgi://{server}")]);
    let upstream = draft.upstreams.add(name, keys);
    let text = "Kirin runs applications in Perl, Python and Ruby, if the file names one \
                (`psgi`, `module`, `wsgi-file` with a .py file, `rack` with a .ru file). Keep \
                uWSGI running with a `socket`, and \
                Kirin passes requests to it by its own protocol (docs/proxy.md)";
    draft.notes.left_out(start, "[uwsgi]", text);
    (format!("proxy:{upstream}"), start.to_string())
}
