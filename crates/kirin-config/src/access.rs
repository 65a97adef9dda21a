//! `deny`, `allow` and `maintenance` of a route.

use std::fmt;

use kirin_gateway::routing::access::{Access, Denial, Maintenance};
use kirin_gateway::routing::error_page::check_path;
use kirin_http::{PeerSet, StatusCode};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, Unexpected, Visitor};

use crate::peers::peers;
use crate::route::RouteSection;
use crate::source::{ConfigError, ConfigSource, ErrorCollector};
use crate::units::Seconds;
use crate::written::Written;

/// The value of `deny`: the status of refusals.
#[derive(Clone, Copy, Debug)]
pub struct DenyStatus(StatusCode);

/// The value of `maintenance`. `true` is an empty table.
#[derive(Debug, Default)]
pub struct MaintenanceKey(pub Option<MaintenanceSection>);

/// What clients get while a route is in maintenance.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MaintenanceSection {
    /// The path of the page that clients get, such as `"/errors/maintenance.html"`. It is in the
    /// store or in files, as those of `error_pages` are. Default: the page that `error_pages` has
    /// for 503.
    pub page: Option<Written<String>>,
    /// When clients may come again: the value of `Retry-After`.
    pub retry_after: Seconds,
    /// The addresses that are served as usual, written as those of `route.allow`.
    pub allow: Vec<Written<String>>,
}

impl Default for MaintenanceSection {
    fn default() -> Self {
        Self { page: None, retry_after: Seconds(600), allow: Vec::new() }
    }
}

/// Checks which clients a route serves.
pub fn check_access(
    section: &RouteSection,
    source: &ConfigSource,
    errors: &mut ErrorCollector,
) -> Option<Access> {
    let status = section.deny.map(|DenyStatus(status)| status);
    let except = section.allow.as_ref().map(|allow| check_allow(allow, source));
    let except = errors.keep(except.transpose());
    let maintenance = section.maintenance.0.as_ref();
    let maintenance = maintenance.map(|section| check_maintenance(section, source));
    let maintenance = errors.keep(maintenance.transpose());
    let (except, maintenance) = (except?, maintenance?);
    let denial = (status.is_some() || except.is_some())
        .then(|| Denial { status: status.unwrap_or(StatusCode::FORBIDDEN), except });
    Some(Access { denial, maintenance })
}

fn check_allow(
    allow: &Written<Vec<Written<String>>>,
    source: &ConfigSource,
) -> Result<PeerSet, ConfigError> {
    if allow.is_empty() {
        let message = "`allow` names nobody: to refuse everybody, write `deny = 403` without it";
        return Err(source.error(allow.span(), message));
    }
    peers(allow, "allow", source)
}

fn check_maintenance(
    section: &MaintenanceSection,
    source: &ConfigSource,
) -> Result<Maintenance, ConfigError> {
    if let Some(page) = &section.page {
        check_path(page)
            .map_err(|message| source.error(page.span(), format!("maintenance page {message}")))?;
    }
    Ok(Maintenance {
        page: section.page.as_ref().map(|page| page.to_string()),
        retry_after_seconds: section.retry_after.0,
        except: peers(&section.allow, "maintenance.allow", source)?,
    })
}

impl<'de> Deserialize<'de> for DenyStatus {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DenyVisitor)
    }
}

struct DenyVisitor;

impl Visitor<'_> for DenyVisitor {
    type Value = DenyStatus;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("403 or 404")
    }

    fn visit_i64<E: Error>(self, status: i64) -> Result<DenyStatus, E> {
        match status {
            403 => Ok(DenyStatus(StatusCode::FORBIDDEN)),
            404 => Ok(DenyStatus(StatusCode::NOT_FOUND)),
            // The caller adds the key before the message.
            _ => Err(E::custom(format!("is {status}: allowed are 403 and 404"))),
        }
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<DenyStatus, E> {
        Err(E::invalid_type(Unexpected::Str(text), &self))
    }
}

impl<'de> Deserialize<'de> for MaintenanceKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(MaintenanceVisitor)
    }
}

struct MaintenanceVisitor;

impl<'de> Visitor<'de> for MaintenanceVisitor {
    type Value = MaintenanceKey;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("true, false or a table such as { page = \"/errors/maintenance.html\" }")
    }

    fn visit_bool<E: Error>(self, is_on: bool) -> Result<MaintenanceKey, E> {
        Ok(MaintenanceKey(is_on.then(MaintenanceSection::default)))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<MaintenanceKey, A::Error> {
        MaintenanceSection::deserialize(MapAccessDeserializer::new(map))
            .map(|section| MaintenanceKey(Some(section)))
    }
}
