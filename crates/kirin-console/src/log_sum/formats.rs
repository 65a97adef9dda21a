//! The formats of access logs: as an argument, and as a configuration says them.

use std::path::{Path, PathBuf};

use kirin_config::{ConfigErrors, ConfigSource, toml_table};
use kirin_log_summary::line::LineFormat;

/// The access logs of a configuration that have a format.
pub struct LogFormats(Vec<(PathBuf, String)>);

impl LogFormats {
    /// Reads them. All else in the configuration may be wrong, as on a machine that only has the
    /// logs.
    pub fn read(config: &Path) -> Result<Self, String> {
        let (table, directory) = read_table(config)?;
        let mut logs = Vec::new();
        collect(&toml::Value::Table(table), &mut |path, format| {
            logs.push((canonical(&directory.join(path)), format.to_owned()));
        });
        Ok(Self(logs))
    }

    /// Returns the format of a log. A rotated log (`access.log.2.gz`) has the format of the longest
    /// path with which its own begins. `None` finds the format out.
    pub fn of(&self, log: &Path) -> Result<Option<LineFormat>, String> {
        let log = canonical(log);
        let found = self.0.iter().filter(|(path, _)| is_log(&log, path));
        match found.max_by_key(|(path, _)| path.as_os_str().len()) {
            None => Ok(None),
            Some((path, format)) => LineFormat::of_configuration(format)
                .map(Some)
                .map_err(|error| format!("the format of {}: {error}", path.display())),
        }
    }
}

/// Reads the table of a configuration, and the directory of its relative paths.
pub(super) fn read_table(config: &Path) -> Result<(toml::Table, PathBuf), String> {
    let read = || {
        let source = ConfigSource::read(config)?;
        Ok((toml_table(&source)?, source.directory))
    };
    read().map_err(|errors: ConfigErrors| errors.to_string())
}

/// Calls `take` with the path and the format of each `access_log` in a configuration.
fn collect(value: &toml::Value, take: &mut impl FnMut(&str, &str)) {
    match value {
        toml::Value::Table(table) => {
            for (key, value) in table {
                let text = |name: &str| value.get(name).and_then(toml::Value::as_str);
                match (key.as_str(), text("path"), text("format")) {
                    ("access_log", Some(path), Some(format)) => take(path, format),
                    _ => collect(value, take),
                }
            }
        }
        toml::Value::Array(values) => values.iter().for_each(|value| collect(value, take)),
        _ => {}
    }
}

/// Returns whether a file is the log with this path, or one that was rotated. Both are canonical.
pub(super) fn is_log(file: &Path, path: &Path) -> bool {
    let rest = (file.parent() == path.parent())
        .then(|| file.file_name()?.to_str()?.strip_prefix(path.file_name()?.to_str()?))
        .flatten();
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '-']))
}

/// Returns the path with its directory resolved. The file itself may be a link, and may have gone.
pub(super) fn canonical(path: &Path) -> PathBuf {
    let directory = match path.parent() {
        Some(directory) if directory != Path::new("") => directory,
        _ => Path::new("."),
    };
    match (directory.canonicalize(), path.file_name()) {
        (Ok(directory), Some(name)) => directory.join(name),
        _ => path.to_owned(),
    }
}

/// Parses a format: its name, directives, variables, or a line of another server's configuration.
pub fn parse_format(text: &str) -> Result<LineFormat, String> {
    LineFormat::from_text(text).map_err(|error| error.to_string())
}
