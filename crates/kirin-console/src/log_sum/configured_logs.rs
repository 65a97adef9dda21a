//! The access logs of a configuration, with their formats and the sites of their requests.

use std::path::{Path, PathBuf};

use kirin_config::{ConfigErrors, ConfigSource, DEFAULT_LOG_FORMAT, LogTarget, toml_table};
use toml::Value;

use super::sites::ConfiguredSites;

/// What a configuration says about access logs. All else in it may be wrong, as on a machine that
/// only has the logs.
pub struct LogConfiguration {
    /// The file, as it was named.
    pub file: PathBuf,
    /// The sites, if there is one.
    pub sites: Option<ConfiguredSites>,
    logs: Vec<ConfiguredLog>,
}

/// An access log that is a file.
pub struct ConfiguredLog {
    /// The path, with its directory resolved.
    pub path: PathBuf,
    /// The format as it is written in the configuration.
    pub format: String,
}

impl LogConfiguration {
    /// Reads a configuration.
    pub fn read(file: &Path) -> Result<Self, String> {
        let read = || {
            let source = ConfigSource::read(file)?;
            let table = toml_table(&source)?;
            Ok((source, table))
        };
        let (source, table) = read().map_err(|errors: ConfigErrors| errors.to_string())?;
        let table = Value::Table(table);
        let mut logs = Vec::<ConfiguredLog>::new();
        for_each_log(&table, &mut |path, format| {
            let Some(path) = log_file(path, &source) else { return };
            if logs.iter().all(|log| log.path != path) {
                logs.push(ConfiguredLog { path, format: format.to_owned() });
            }
        });
        let sites = ConfiguredSites::read(&table, &source);
        let sites = sites.map_err(|error| format!("{}: {error}", file.display()))?;
        Ok(Self { file: file.to_owned(), sites, logs })
    }

    /// Returns the access log that a file is. A rotated one (`access.log.2.gz`) belongs to the log
    /// with the longest path with which its own begins.
    pub fn log_of(&self, file: &Path) -> Option<&ConfiguredLog> {
        let file = canonical(file);
        let found = self.logs.iter().filter(|log| is_log(&file, &log.path));
        found.max_by_key(|log| log.path.as_os_str().len())
    }

    /// Returns all access logs that are files.
    pub fn logs(&self) -> &[ConfiguredLog] {
        &self.logs
    }
}

/// Calls `take` with the path and the format of each `access_log` in a part of a configuration.
pub(super) fn for_each_log(value: &Value, take: &mut impl FnMut(&str, &str)) {
    match value {
        Value::Table(table) => {
            for (key, value) in table {
                let text = |name: &str| value.get(name).and_then(Value::as_str);
                match (key.as_str(), value, text("path")) {
                    ("access_log", Value::String(path), _) => take(path, DEFAULT_LOG_FORMAT),
                    ("access_log", _, Some(path)) => {
                        take(path, text("format").unwrap_or(DEFAULT_LOG_FORMAT));
                    }
                    _ => for_each_log(value, take),
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|value| for_each_log(value, take)),
        _ => {}
    }
}

/// Returns the file that the path of an `access_log` names, if it does not name a stream or a
/// daemon.
pub(super) fn log_file(path: &str, source: &ConfigSource) -> Option<PathBuf> {
    match LogTarget::read(path, source) {
        Ok(LogTarget::File(path)) => Some(canonical(&path)),
        _ => None,
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
