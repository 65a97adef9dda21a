//! `match` of a route: what a request must have beside its path.

use std::collections::BTreeMap;
use std::fmt;

use kirin_gateway::routing::conditions::{Condition, RouteConditions, Wanted};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::{Deserializer, Error, Visitor};

use crate::peers::peers;
use crate::source::{ConfigError, ConfigSource, ErrorCollector};
use crate::word::{ConfigWords, Word};
use crate::written::Written;

/// What a request must have beside its path.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MatchSection {
    /// The methods, such as `["GET", "POST"]`. `HEAD` goes with `GET`.
    pub methods: Option<Written<Vec<Written<String>>>>,
    /// Fields of the request, such as `{ "X-Beta" = "1", "Accept" = "*json*" }`. A `*` at the
    /// beginning or the end stands for any text. `"*"`: the field is there. `false`: it is not
    /// there. If there are several lines of a field, one of them must have the value.
    #[serde(default)]
    pub headers: BTreeMap<Written<String>, Written<WantedKey>>,
    /// Arguments of the query, decoded as a form is, such as `{ "preview" = "*" }`. The values are
    /// written as those of `headers`.
    #[serde(default)]
    pub query: BTreeMap<Written<String>, Written<WantedKey>>,
    /// Addresses and networks of clients, such as `["10.0.0.0/8", "::1", "unix:"]`. Behind a
    /// `trusted` proxy it is the client that the proxy names.
    pub clients: Option<Written<Vec<Written<String>>>>,
    /// Cookies, such as `{ beta = "1", session = "*" }`. The values are written as those of
    /// `headers`. Upper and lower case of names differ.
    #[serde(default)]
    pub cookies: BTreeMap<Written<String>, Written<WantedKey>>,
    /// `"http"` or `"https"`. Behind a `trusted` proxy it is the scheme that the proxy names.
    pub scheme: Option<Written<Word<Scheme>>>,
    /// Conditions of which none may hold, such as `{ clients = ["10.0.0.0/8"] }`. It has the same
    /// keys as `match`, without `not`.
    #[schemars(with = "Option<String>")]
    pub not: Option<Box<Written<MatchSection>>>,
}

/// The scheme of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// Without TLS.
    Http,
    /// With TLS.
    Https,
}

impl ConfigWords for Scheme {
    const WORDS: &'static [(&'static str, Self)] = &[("http", Self::Http), ("https", Self::Https)];
}

/// What a field or an argument must be, as it is written.
#[derive(Debug, JsonSchema)]
#[schemars(inline, with = "String")]
pub struct WantedKey(Wanted);

/// Checks `section`.
pub fn check_conditions(
    section: &Written<MatchSection>,
    source: &ConfigSource,
    errors: &mut ErrorCollector,
) -> Option<RouteConditions> {
    let mut is_good = true;
    let mut conditions = conditions_of(section, source, errors, &mut is_good);
    if let Some(not) = &section.not {
        if let Some(inner) = &not.not {
            let message = "`not` inside of `not`: write the conditions themselves";
            errors.push(source.error(inner.span(), message));
            is_good = false;
        }
        let unwanted = conditions_of(not, source, errors, &mut is_good);
        if is_good && unwanted.is_empty() {
            let message = format!("`not` is empty: allowed are {KEYS}");
            errors.push(source.error(not.span(), message));
            is_good = false;
        }
        conditions.extend(unwanted.into_iter().map(Box::new).map(Condition::Not));
    }
    if is_good && conditions.is_empty() {
        let message = format!("`match` is empty: allowed are {KEYS} and not");
        errors.push(source.error(section.span(), message));
        is_good = false;
    }
    is_good.then(|| RouteConditions::new(conditions))
}

/// The keys of conditions, for messages.
const KEYS: &str = "methods, headers, query, clients, cookies, scheme";

/// Returns the conditions of a table without those of its `not`. Sets `is_good` to false if one of
/// them has an error.
fn conditions_of(
    section: &MatchSection,
    source: &ConfigSource,
    errors: &mut ErrorCollector,
    is_good: &mut bool,
) -> Vec<Condition> {
    let mut conditions = Vec::new();
    let mut add = |condition: Result<Condition, ConfigError>| match condition {
        Ok(condition) => conditions.push(condition),
        Err(error) => {
            *is_good = false;
            errors.push(error);
        }
    };
    if let Some(methods) = &section.methods {
        let names = methods.iter().map(|name| name.as_str());
        add(Condition::methods(names)
            .map_err(|error| source.error(methods.span(), format!("`methods`: {error}"))));
    }
    for (name, wanted) in &section.headers {
        add(Condition::field(name, wanted.0.clone())
            .map_err(|error| source.error(name.span(), format!("`match.headers`: {error}"))));
    }
    for (name, wanted) in &section.query {
        add(Ok(Condition::argument(name, wanted.0.clone())));
    }
    if let Some(clients) = &section.clients {
        add(peers(clients, "clients", source).and_then(|peers| {
            Condition::clients(peers)
                .map_err(|error| source.error(clients.span(), format!("`clients`: {error}")))
        }));
    }
    for (name, wanted) in &section.cookies {
        add(Condition::cookie(name, wanted.0.clone())
            .map_err(|error| source.error(name.span(), format!("`match.cookies`: {error}"))));
    }
    if let Some(scheme) = &section.scheme {
        add(Ok(Condition::Scheme { is_https: matches!(scheme.0, Scheme::Https) }));
    }
    conditions
}

impl<'de> Deserialize<'de> for WantedKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(WantedVisitor).map(Self)
    }
}

struct WantedVisitor;

impl Visitor<'_> for WantedVisitor {
    type Value = Wanted;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text such as \"1\", \"*json*\" or \"*\" (is there), or false (is not there)")
    }

    fn visit_bool<E: Error>(self, is_there: bool) -> Result<Wanted, E> {
        match is_there {
            true => Err(E::custom("write \"*\" for: is there")),
            false => Ok(Wanted::Absent),
        }
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Wanted, E> {
        Wanted::parse(text).map_err(E::custom)
    }
}

#[cfg(test)]
#[path = "conditions_tests.rs"]
mod tests;
