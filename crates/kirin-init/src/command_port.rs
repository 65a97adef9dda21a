//! Finds the port in a command that starts a server, such as `gunicorn -b 0.0.0.0:8000 app:app`.

/// The port that a command names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NamedPort {
    /// This port.
    Number(u16),
    /// The port in the environment variable `PORT`.
    Variable,
    /// No port.
    None,
}

/// Options whose value is a port or an address.
const OPTIONS: [&str; 9] =
    ["-p", "--port", "-b", "--bind", "-l", "--listen", "--http-port", "--server.port", "--addr"];

/// The ports of programs that are started without one. A program comes before those that it may
/// start.
const DEFAULT_PORTS: [(&str, u16); 32] = [
    ("gunicorn", 8000),
    ("uvicorn", 8000),
    ("hypercorn", 8000),
    ("daphne", 8000),
    ("runserver", 8000),
    ("fastapi", 8000),
    ("waitress-serve", 8080),
    ("flask", 5000),
    ("streamlit", 8501),
    ("rails", 3000),
    ("puma", 9292),
    ("rackup", 9292),
    ("falcon", 9292),
    ("unicorn", 8080),
    ("thin", 3000),
    ("next", 3000),
    ("nuxt", 3000),
    ("remix-serve", 3000),
    ("react-scripts", 3000),
    ("json-server", 3000),
    ("serve", 3000),
    ("astro", 4321),
    ("ng", 4200),
    ("vite", 5173),
    ("http-server", 8080),
    ("plackup", 5000),
    ("starman", 5000),
    ("morbo", 3000),
    ("hypnotoad", 8080),
    ("hugo", 1313),
    ("jekyll", 4000),
    ("mkdocs", 8000),
];

/// Returns the port that the command names.
pub(crate) fn named_port(command: &str) -> NamedPort {
    let mut has_variable = false;
    let mut is_value = false;
    for word in words(command) {
        has_variable |= word.contains("$PORT") || word.contains("${PORT");
        let value = match option_value(word) {
            Some(value) => Some(value),
            None if is_value || is_address(word) => Some(word),
            None => None,
        };
        if let Some(port) = value.and_then(port_of) {
            return NamedPort::Number(port);
        }
        is_value = OPTIONS.contains(&word);
    }
    if has_variable { NamedPort::Variable } else { NamedPort::None }
}

/// Returns the port that the program of the command takes if the command names none.
pub(crate) fn default_port(command: &str) -> Option<u16> {
    let names = || words(command).map(|word| word.rsplit('/').next().unwrap_or(word));
    if names().any(|name| name == "vite") && names().any(|name| name == "preview") {
        return Some(4173);
    }
    DEFAULT_PORTS
        .iter()
        .find(|(program, _)| names().any(|name| name == *program))
        .map(|(_, port)| *port)
}

/// Returns the command with `port` in the place of the variable `PORT`.
pub(crate) fn with_port(command: &str, port: u16) -> String {
    command.replace("${PORT}", &port.to_string()).replace("$PORT", &port.to_string())
}

/// Returns the port at the end of `8000`, `:8000`, `0.0.0.0:8000`, `tcp://0.0.0.0:8000` or
/// `${PORT:-8000}`.
pub(crate) fn port_of(text: &str) -> Option<u16> {
    if let Some((_, default)) = text.split_once("${") {
        return port_of(default.split_once(":-")?.1.split_once('}')?.0);
    }
    let address = text.split('?').next()?.trim_end_matches('/');
    let digits = address.rsplit(':').next()?;
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number || text.starts_with("unix:") {
        return None;
    }
    digits.parse().ok().filter(|port| *port != 0)
}

/// Returns the words of a command without quotes and the commas of a JSON list.
fn words(command: &str) -> impl Iterator<Item = &str> {
    command
        .split_whitespace()
        .map(|word| word.trim_matches(|character| "\"'[],;()".contains(character)))
}

/// Returns the value in `PORT=3000`, `--port=3000` or `-p3000`.
fn option_value(word: &str) -> Option<&str> {
    if let Some((name, value)) = word.split_once('=') {
        return (name == "PORT" || OPTIONS.contains(&name)).then_some(value);
    }
    word.strip_prefix("-p").filter(|value| value.starts_with(|first: char| first.is_ascii_digit()))
}

/// Says whether a word without an option is an address, such as the one of Django's `runserver`.
fn is_address(word: &str) -> bool {
    let hosts = ["0.0.0.0:", "127.0.0.1:", "localhost:", "[::]:", "[::1]:", ":"];
    hosts.iter().any(|host| word.starts_with(host))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_names_a_port_in_many_ways() {
        for (command, port) in [
            ("thin start -p 3000", NamedPort::Number(3000)),
            ("next start -p3001", NamedPort::Number(3001)),
            ("x --port 3000 -p 4000", NamedPort::Number(3000)),
            ("x --port=3002", NamedPort::Number(3002)),
            ("cross-env PORT=3003 node server.js", NamedPort::Number(3003)),
            ("gunicorn -b 0.0.0.0:8000 app:app", NamedPort::Number(8000)),
            ("gunicorn --bind=127.0.0.1:8001 app:app", NamedPort::Number(8001)),
            ("puma -b tcp://0.0.0.0:9393", NamedPort::Number(9393)),
            ("puma -b 'tcp://0.0.0.0:9394?x=1'", NamedPort::Number(9394)),
            ("python manage.py runserver 0.0.0.0:8002", NamedPort::Number(8002)),
            ("serve -l tcp://localhost:5001", NamedPort::Number(5001)),
            ("puma -p ${PORT:-3004}", NamedPort::Number(3004)),
            ("puma -p $PORT", NamedPort::Variable),
            ("gunicorn -b :$PORT app:app", NamedPort::Variable),
            ("puma -p ${PORT}", NamedPort::Variable),
            ("mkdir -p tmp && node server.js", NamedPort::None),
            ("gunicorn -b unix:/run/app.sock app:app", NamedPort::None),
            ("x -p 0", NamedPort::None),
            ("x -p 65536", NamedPort::None),
            ("x -p", NamedPort::None),
            ("", NamedPort::None),
        ] {
            assert_eq!(named_port(command), port, "{command}");
        }
    }

    #[test]
    fn a_program_has_a_default_port() {
        for (command, port) in [
            ("bundle exec puma -C config/puma.rb", Some(9292)),
            ("./node_modules/.bin/next start", Some(3000)),
            ("vite preview", Some(4173)),
            ("vite", Some(5173)),
            ("node server.js", None),
        ] {
            assert_eq!(default_port(command), port, "{command}");
        }
    }

    #[test]
    fn the_port_replaces_the_variable() {
        assert_eq!(with_port("puma -p $PORT", 3000), "puma -p 3000");
        assert_eq!(with_port("puma -b :${PORT}", 3000), "puma -b :3000");
    }
}
