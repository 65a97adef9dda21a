//! `match` of a route: what a request must have beside its path.

use std::collections::BTreeMap;
use std::fmt;

use kirin_gateway::routing::conditions::{Condition, RouteConditions, Wanted};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::{Deserializer, Error, Visitor};

use crate::peers::peers;
use crate::source::{ConfigError, ConfigSource, ErrorCollector};
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
    let mut conditions = Vec::new();
    let mut is_good = true;
    let mut add = |condition: Result<Condition, ConfigError>| match condition {
        Ok(condition) => conditions.push(condition),
        Err(error) => {
            is_good = false;
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
    if is_good && conditions.is_empty() {
        let message = "`match` is empty: allowed are methods, headers, query and clients";
        errors.push(source.error(section.span(), message));
        is_good = false;
    }
    is_good.then(|| RouteConditions::new(conditions))
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
