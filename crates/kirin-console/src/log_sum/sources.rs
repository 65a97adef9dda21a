//! Which logs are read, and what is known of them from a configuration.

use std::path::{Path, PathBuf};

use kirin_config::DEFAULT_FILE;
use kirin_log_summary::line::LineFormat;

use super::configured_logs::{ConfiguredLog, LogConfiguration};
use super::is_stdin;
use super::sites::ConfiguredSites;

/// The logs to read.
#[derive(Default)]
pub struct LogSources {
    /// The logs, in their order.
    pub logs: Vec<LogSource>,
    /// The sites of the configuration.
    pub sites: Option<ConfiguredSites>,
    /// What was taken from which file.
    pub note: Option<String>,
    /// What could not be taken.
    pub warnings: Vec<String>,
}

/// A log to read.
pub struct LogSource {
    /// The file, as it is named; `-` is the standard input.
    pub file: PathBuf,
    /// Its format, as the configuration says it.
    pub configured: Option<ConfiguredFormat>,
}

/// The format of a log in a configuration.
pub struct ConfiguredFormat {
    /// The compiled format.
    pub format: LineFormat,
    /// The format as it is written.
    pub text: String,
    /// The name of the configuration.
    pub configuration: String,
}

impl LogSources {
    /// Finds the logs to read. Without a file these are the logs of the configuration. Without a
    /// `--config` it is `kirin.toml` of this directory, if it is there. It is used for files that
    /// are logs of it. With a `--format`, no configuration is needed.
    pub fn find(
        files: &[PathBuf],
        config: Option<&Path>,
        has_format: bool,
    ) -> Result<Self, String> {
        let default = Path::new(DEFAULT_FILE);
        match config {
            Some(config) => Self::of_configuration(files, LogConfiguration::read(config)?, true),
            None if has_format && files.is_empty() => {
                Err("name the FILE that has this --format".into())
            }
            None if has_format || (!files.is_empty() && !default.exists()) => {
                Ok(Self::without_configuration(files))
            }
            None if files.is_empty() && !default.exists() => Err(format!(
                "name a FILE, or the --config of the Kirin whose access logs are to be read: there \
                 is no {DEFAULT_FILE} in this directory"
            )),
            None => match LogConfiguration::read(default) {
                Ok(found) => {
                    let is_needed = files.is_empty();
                    if !is_needed && files.iter().all(|file| log_of(&found, file).is_none()) {
                        return Ok(Self::without_configuration(files));
                    }
                    Self::of_configuration(files, found, is_needed)
                }
                Err(error) if files.is_empty() => Err(error),
                Err(error) => {
                    let mut sources = Self::without_configuration(files);
                    sources.warnings.push(format!(
                        "{DEFAULT_FILE} is not used, because it cannot be read: {error}"
                    ));
                    Ok(sources)
                }
            },
        }
    }

    fn without_configuration(files: &[PathBuf]) -> Self {
        let source = |file: &PathBuf| LogSource { file: file.clone(), configured: None };
        Self { logs: files.iter().map(source).collect(), ..Self::default() }
    }

    /// Takes the formats of the files, or all logs. `is_asked` is whether the user has asked for
    /// the configuration, so that a format that cannot be read is an error.
    fn of_configuration(
        files: &[PathBuf],
        found: LogConfiguration,
        is_asked: bool,
    ) -> Result<Self, String> {
        let configuration = found.file.display().to_string();
        let mut sources = Self::default();
        let files = match files {
            [] => sources.existing_files(&found)?,
            _ => files.to_vec(),
        };
        let mut noted = Vec::new();
        for file in files {
            let configured = match log_of(&found, &file) {
                Some(log) => match configured_format(log, &file, &configuration) {
                    Ok(format) => {
                        noted.push(format!("{} has the format {}", file.display(), format.text));
                        Some(format)
                    }
                    Err(error) if is_asked => return Err(error),
                    Err(error) => {
                        sources.warnings.push(error);
                        None
                    }
                },
                None => {
                    let is_noted = is_asked && !is_stdin(&file);
                    noted.extend(
                        is_noted.then(|| format!("{} is no access log of it", file.display())),
                    );
                    None
                }
            };
            sources.logs.push(LogSource { file, configured });
        }
        sources.note = note(&configuration, noted, found.sites.as_ref());
        sources.sites = found.sites;
        Ok(sources)
    }

    /// Returns the access logs of a configuration that exist.
    fn existing_files(&mut self, found: &LogConfiguration) -> Result<Vec<PathBuf>, String> {
        let configuration = found.file.display();
        let paths: Vec<_> = found.logs().iter().map(|log| short(&log.path)).collect();
        if paths.is_empty() {
            return Err(format!("name a FILE: no access_log of {configuration} is a file"));
        }
        let (there, missing): (Vec<_>, Vec<_>) = paths.into_iter().partition(|path| path.exists());
        let missing: Vec<_> = missing.iter().map(|path| path.display().to_string()).collect();
        let missing = missing.join(", ");
        if there.is_empty() {
            return Err(format!("no access log of {configuration} exists yet: {missing}"));
        }
        if !missing.is_empty() {
            self.warnings.push(format!("left out, because they do not exist: {missing}"));
        }
        Ok(there)
    }
}

/// Returns the access log that a file is. The standard input is none.
fn log_of<'a>(found: &'a LogConfiguration, file: &Path) -> Option<&'a ConfiguredLog> {
    (!is_stdin(file)).then(|| found.log_of(file)).flatten()
}

/// Returns the format of an access log of a configuration.
fn configured_format(
    log: &ConfiguredLog,
    file: &Path,
    configuration: &str,
) -> Result<ConfiguredFormat, String> {
    let format = LineFormat::of_configuration(&log.format)
        .map_err(|error| format!("the format of {} in {configuration}: {error}", file.display()))?;
    let text = log.format.replace('\t', "\\t");
    Ok(ConfiguredFormat { format, text, configuration: configuration.to_owned() })
}

/// Returns the path without this directory before it.
fn short(path: &Path) -> PathBuf {
    let here = std::env::current_dir().ok().and_then(|here| here.canonicalize().ok());
    let inside = here.and_then(|here| path.strip_prefix(here).ok().map(Path::to_owned));
    inside.unwrap_or_else(|| path.to_owned())
}

/// Returns a line that says what was taken from a configuration.
fn note(
    configuration: &str,
    mut noted: Vec<String>,
    sites: Option<&ConfiguredSites>,
) -> Option<String> {
    noted.extend(sites.map(|sites| match sites.count() {
        1 => "there is 1 site".to_owned(),
        count => format!("there are {count} sites"),
    }));
    (!noted.is_empty()).then(|| format!("{configuration} says: {}", noted.join(", ")))
}
