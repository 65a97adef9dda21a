//! The `access_log` key of a listener, a route and a site: a target, a table, or `false`.

use std::cell::RefCell;
use std::fmt;
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

use kirin_gateway::routing::conditions::RouteConditions;
use kirin_gateway::routing::path_pattern::PathPattern;
use kirin_gateway::routing::route_table::RouteTable;
use kirin_http::RequestPath;
use kirin_server::logging::log_format::NAMES;
use kirin_server::{ExceptedPaths, LogConditions, LogFormat};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, Visitor};

use crate::log_file;
use crate::log_target::LogTarget;
use crate::source::{ConfigError, ConfigSource, ErrorCollector};
use crate::units::Milliseconds;
use crate::written::Written;

/// The value of the key.
#[derive(Debug)]
pub enum AccessLogKey {
    /// `false`: no log.
    Off,
    /// The value of `path` alone.
    Path(String),
    /// A table.
    Table(Box<AccessLogSection>),
}

/// Where lines go, what is in them, and which responses get one.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AccessLogSection {
    /// A file, `"stdout"`, `"stderr"`, `"journald"` (the journal of systemd), `"syslog"` (the
    /// daemon at `/dev/log`), `"syslog:HOST:PORT"` (one that listens on UDP), or the socket of one:
    /// `"journald:unix:PATH"`, `"syslog:unix:PATH"`.
    pub path: Written<String>,
    /// `"combined"`, `"common"`, `"json"`, `"ltsv"`, `"terminal"`, or directives of Apache's
    /// LogFormat, such as `'%h %t "%r" %>s %b %D'` ([access-log.md](access-log.md#directives)). One
    /// file has one format. Default: `"combined"`.
    pub format: Option<Written<String>>,
    /// Only responses with these statuses: `["4xx", "5xx", 304]`. `"cut"`: responses that the
    /// client did not get completely. Default: all.
    #[serde(default)]
    #[schemars(with = "Option<Vec<String>>")]
    pub status: Vec<Written<StatusKey>>,
    /// Only responses that took at least this time, such as `"500ms"`. With `status`, lines that
    /// either of them chooses. Default: all.
    pub slower_than: Option<Milliseconds>,
    /// Only this share of the responses, such as `0.01`. Lines that `status` or `slower_than`
    /// choose are written in any case. Default: all.
    #[schemars(with = "Option<f64>")]
    pub sample: Option<Written<f64>>,
    /// The paths without lines, written as the `path` of a route, such as `["/health",
    /// "/static"]`. They come before the other keys.
    #[serde(default)]
    pub except: Vec<Written<String>>,
}

/// A status, a class of them, or `cut`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StatusKey {
    /// Statuses.
    Statuses(RangeInclusive<u16>),
    /// Responses that were cut.
    Cut,
}

/// An access log as the program opens it.
#[derive(Clone, Debug)]
pub struct AccessLogConfig {
    /// Where its lines go.
    pub target: LogTarget,
    /// Their format.
    pub format: Arc<LogFormat>,
    /// Which responses get a line.
    pub conditions: LogConditions,
    /// The conditions as they are written, such as `status 5xx`.
    pub conditions_text: String,
}

impl AccessLogConfig {
    /// Returns whether this is what `access_log = "PATH"` stands for, with this target.
    pub fn is_path(&self, target: &LogTarget) -> bool {
        self.target == *target
            && self.format.name() == DEFAULT_LOG_FORMAT
            && self.conditions_text.is_empty()
    }
}

/// The target, then the format and the conditions unless they are the default.
impl fmt::Display for AccessLogConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.target.fmt(f)?;
        if self.format.name() != DEFAULT_LOG_FORMAT {
            write!(f, ", format {}", self.format.name())?;
        }
        if !self.conditions_text.is_empty() {
            write!(f, ", only {}", self.conditions_text)?;
        }
        Ok(())
    }
}

/// The format of an access log that names none.
pub const DEFAULT_LOG_FORMAT: &str = "combined";

/// The access logs of a file, while they are checked.
#[derive(Debug, Default)]
pub struct LogsOfFile {
    /// The files, each with its format and the place where that is written.
    files: RefCell<Vec<(LogTarget, String, Range<usize>)>>,
}

impl LogsOfFile {
    /// Checks a key. Returns `None` if it is wrong.
    pub fn check(
        &self,
        key: &Written<AccessLogKey>,
        source: &ConfigSource,
        errors: &mut ErrorCollector,
    ) -> Option<Option<AccessLogConfig>> {
        let log = match &**key {
            AccessLogKey::Off => return Some(None),
            AccessLogKey::Path(path) => {
                let target = LogTarget::read(path, source)
                    .map_err(|message| source.error(key.span(), message));
                AccessLogConfig {
                    target: errors.keep(target)?,
                    format: errors.keep(compile(DEFAULT_LOG_FORMAT, key.span(), source))?,
                    conditions: LogConditions::default(),
                    conditions_text: String::new(),
                }
            }
            AccessLogKey::Table(section) => check_section(section, source, errors)?,
        };
        let span = match &**key {
            AccessLogKey::Table(section) => {
                section.format.as_ref().map_or_else(|| key.span(), Written::span)
            }
            _ => key.span(),
        };
        errors.keep(self.add(&log, span, source))?;
        Some(Some(log))
    }

    /// Returns an error for each file that this process could not write.
    pub fn unwritable(&self, source: &ConfigSource) -> Vec<ConfigError> {
        let files = self.files.borrow();
        let error = |(target, _, span): &(LogTarget, String, Range<usize>)| {
            let LogTarget::File(path) = target else { return None };
            let obstacle = log_file::obstacle(path)?;
            Some(source.error(span.clone(), format!("the access log: {obstacle}")))
        };
        files.iter().filter_map(error).collect()
    }

    /// Refuses a second format in a file, since no program could read it.
    fn add(
        &self,
        log: &AccessLogConfig,
        span: Range<usize>,
        source: &ConfigSource,
    ) -> Result<(), ConfigError> {
        if !matches!(log.target, LogTarget::File(_)) {
            return Ok(());
        }
        let mut files = self.files.borrow_mut();
        let name = log.format.name();
        match files.iter().find(|(target, ..)| *target == log.target) {
            Some((target, other, _)) if other != name => {
                let message = format!(
                    "{target} is already an access log with the format `{other}`: one file has \
                     one format"
                );
                Err(source.error(span, message))
            }
            Some(_) => Ok(()),
            None => {
                files.push((log.target.clone(), name.to_owned(), span));
                Ok(())
            }
        }
    }
}

fn check_section(
    section: &AccessLogSection,
    source: &ConfigSource,
    errors: &mut ErrorCollector,
) -> Option<AccessLogConfig> {
    let target = LogTarget::read(&section.path, source)
        .map_err(|message| source.error(section.path.span(), message));
    let target = errors.keep(target);
    let format = match &section.format {
        Some(format) => compile(format, format.span(), source),
        None => compile(DEFAULT_LOG_FORMAT, 0..0, source),
    };
    let format = errors.keep(format);
    let sample = match &section.sample {
        Some(share) if !(**share > 0.0 && **share <= 1.0) => {
            let message =
                format!("`sample` is {}: allowed is a share above 0 and up to 1", **share);
            errors.push(source.error(share.span(), message));
            None
        }
        share => share.as_deref().copied(),
    };
    let except = check_except(&section.except, source, errors);
    let statuses = section.status.iter().filter_map(|status| match &**status {
        StatusKey::Statuses(statuses) => Some(statuses.clone()),
        StatusKey::Cut => None,
    });
    let conditions = LogConditions {
        statuses: statuses.collect(),
        cut: section.status.iter().any(|status| **status == StatusKey::Cut),
        slower_than: section.slower_than.map(Into::into),
        sample,
        except: except?,
    };
    let conditions_text = describe(section);
    Some(AccessLogConfig { target: target?, format: format?, conditions, conditions_text })
}

/// Describes the conditions for people.
fn describe(section: &AccessLogSection) -> String {
    let mut chosen = Vec::new();
    if !section.status.is_empty() {
        let statuses: Vec<_> = section.status.iter().map(|status| status.to_string()).collect();
        chosen.push(format!("status {}", statuses.join(" ")));
    }
    chosen.extend(section.slower_than.map(|time| format!("slower than {} ms", time.0)));
    chosen.extend(section.sample.as_ref().map(|share| format!("a sample of {}", **share)));
    let mut text = chosen.join(" or ");
    if !section.except.is_empty() {
        let paths: Vec<_> = section.except.iter().map(|path| path.as_str()).collect();
        let all = if text.is_empty() { "paths" } else { "" };
        text.push_str(&format!("{all} outside of {}", paths.join(" ")));
    }
    text
}

fn compile(
    format: &str,
    span: Range<usize>,
    source: &ConfigSource,
) -> Result<Arc<LogFormat>, ConfigError> {
    let refuse = |message: String| Err(source.error(span.clone(), message));
    // A misspelt name would be a format that writes the same text for each request.
    if !format.contains('%') && !NAMES.contains(&format) {
        let names = NAMES.join(", ");
        return refuse(format!(
            "`format` is `{format}`: allowed are {names}, and a text with directives such as \
             '%h %t \"%r\" %>s %b'"
        ));
    }
    let environment =
        |name: &str| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned());
    match LogFormat::compile(format, false, &environment) {
        Ok(format) => Ok(Arc::new(format)),
        Err(error) => refuse(format!("`format` of the access log: {error}")),
    }
}

/// The paths of `except`.
struct Except(RouteTable);

impl fmt::Debug for Except {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Except")
    }
}

impl ExceptedPaths for Except {
    fn contains(&self, path: &str) -> bool {
        RequestPath::parse(path).is_ok_and(|path| self.0.find_by_path(&path).is_some())
    }
}

fn check_except(
    paths: &[Written<String>],
    source: &ConfigSource,
    errors: &mut ErrorCollector,
) -> Option<Option<Arc<dyn ExceptedPaths>>> {
    if paths.is_empty() {
        return Some(None);
    }
    let patterns: Vec<_> = paths
        .iter()
        .filter_map(|path| {
            let pattern = PathPattern::parse(path).map_err(|message| {
                let message = message.replacen("route path", "`except` of the access log:", 1);
                source.error(path.span(), message)
            });
            errors.keep(pattern)
        })
        .collect();
    if patterns.len() < paths.len() {
        return None;
    }
    let routes = patterns.into_iter().map(|pattern| (pattern, RouteConditions::default()));
    match RouteTable::new(routes) {
        Ok(table) => Some(Some(Arc::new(Except(table)))),
        Err(duplicates) => {
            for duplicate in duplicates {
                let Some(path) = paths.get(duplicate.second) else { continue };
                let message = format!("`{}` is in `except` twice", path.as_str());
                errors.push(source.error(path.span(), message));
            }
            None
        }
    }
}

/// As a user writes it.
impl fmt::Display for StatusKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cut => f.write_str("cut"),
            Self::Statuses(statuses) if statuses.start() == statuses.end() => {
                statuses.start().fmt(f)
            }
            Self::Statuses(statuses) => write!(f, "{}xx", statuses.start() / 100),
        }
    }
}

impl std::str::FromStr for StatusKey {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let class = text.strip_suffix("xx").and_then(|class| class.parse::<u16>().ok());
        match (text, class) {
            ("cut", _) => return Ok(Self::Cut),
            (_, Some(class @ 1..=5)) => return Ok(Self::Statuses(class * 100..=class * 100 + 99)),
            _ => {}
        }
        match text.parse::<u16>() {
            Ok(status @ 100..=599) => Ok(Self::Statuses(status..=status)),
            _ => Err(format!(
                "`{text}` is no status; allowed are 100 to 599, \"1xx\" to \"5xx\", and \"cut\""
            )),
        }
    }
}

impl<'de> Deserialize<'de> for StatusKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(StatusVisitor)
    }
}

struct StatusVisitor;

impl Visitor<'_> for StatusVisitor {
    type Value = StatusKey;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a status such as 404, \"5xx\" or \"cut\"")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<StatusKey, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<StatusKey, E> {
        number.to_string().parse().map_err(E::custom)
    }
}

impl<'de> Deserialize<'de> for AccessLogKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AccessLogVisitor)
    }
}

struct AccessLogVisitor;

impl<'de> Visitor<'de> for AccessLogVisitor {
    type Value = AccessLogKey;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "a text or false, or a table such as { path = \"access.log\", format = \"json\" }",
        )
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<AccessLogKey, E> {
        match value {
            false => Ok(AccessLogKey::Off),
            true => Err(E::invalid_value(serde::de::Unexpected::Bool(true), &self)),
        }
    }

    fn visit_str<E: Error>(self, path: &str) -> Result<AccessLogKey, E> {
        Ok(AccessLogKey::Path(path.to_owned()))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<AccessLogKey, A::Error> {
        let section = AccessLogSection::deserialize(MapAccessDeserializer::new(map))?;
        Ok(AccessLogKey::Table(Box::new(section)))
    }
}

#[cfg(test)]
#[path = "access_log_tests.rs"]
mod tests;
