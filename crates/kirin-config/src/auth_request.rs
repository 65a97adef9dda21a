//! `auth_request` of a route: the program that decides who may see it.

use std::fmt;
use std::sync::Arc;

use kirin_gateway::request::given_names::{GivenNames, check_given_name};
use kirin_gateway::routing::auth_request::AuthRequest;
use kirin_gateway::routing::path_pattern::PathPattern;
use kirin_gateway::routing::response_fields::check_settable;
use kirin_gateway::routing::route_table::RouteTable;
use kirin_gateway::routing::settings::RouteConfig;
use kirin_http::RequestPath;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, Visitor};

use crate::place::{Named, check_place, forms};
use crate::route::RouteSection;
use crate::source::{ConfigError, ConfigSource, ErrorCollector};
use crate::written::Written;

/// The value of `auth_request`. A text is a table with `ask`. `false` is none.
#[derive(Debug)]
pub enum AuthRequestKey {
    /// The program, without other keys.
    Ask(String),
    /// A table.
    Table(AuthRequestSection),
    /// `false`: nobody is asked, whatever the site says.
    Off,
}

/// The program that decides who may see a route.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AuthRequestSection {
    /// What Kirin asks: a path of this site, such as `"/auth"`, which may have a query, or a place
    /// that always answers: `"app:NAME"` or `"proxy:NAME"`.
    pub ask: Written<String>,
    /// The path, and perhaps a query, that a place is asked for. Default: `/`.
    pub path: Option<Written<String>>,
    /// The fields of the answer that places get, such as `["Remote-User", "X-Groups"]`. They
    /// replace those of the client: a field that the answer does not have is removed.
    #[serde(default)]
    pub fields: Vec<Written<String>>,
    /// The field of the answer with the name of the visitor. Applications find it in
    /// `REMOTE_USER`. It is one of `fields`, too, so that no client can forge it.
    pub user: Option<Written<String>>,
    /// The fields of the answer that are added to the response, such as `["Set-Cookie"]`.
    #[serde(default)]
    pub response_fields: Vec<Written<String>>,
}

/// `auth_request` of a route, and the route of the place that it asks. Both are `None` if the route
/// has no such key.
#[derive(Default)]
pub struct CheckedAuthRequest {
    /// The rule.
    pub rule: Option<AuthRequest>,
    /// The route of the place.
    pub authority: Option<Box<RouteConfig>>,
}

/// Checks `auth_request` of a route.
pub fn check_auth_request(
    section: &RouteSection,
    named: &Named<'_>,
    source: &ConfigSource,
) -> Result<CheckedAuthRequest, ConfigError> {
    let Some(key) = &section.auth_request else { return Ok(CheckedAuthRequest::default()) };
    let short;
    let table = match &**key {
        AuthRequestKey::Off => return Ok(CheckedAuthRequest::default()),
        AuthRequestKey::Table(table) => table,
        AuthRequestKey::Ask(ask) => {
            short = AuthRequestSection {
                ask: Written::new(key.span(), ask.clone()),
                path: None,
                fields: Vec::new(),
                user: None,
                response_fields: Vec::new(),
            };
            &short
        }
    };
    let AuthTarget { place, target, authority } = check_ask(table, named, source)?;
    let mut fields = Vec::new();
    for name in &table.fields {
        check_given_name(name).map_err(|why| error(source, "fields", name, &why))?;
        fields.push(Arc::from(name.as_str()));
    }
    let mut response_fields = Vec::new();
    for name in &table.response_fields {
        check_settable(name).map_err(|why| error(source, "response_fields", name, &why))?;
        response_fields.push(Arc::from(name.as_str()));
    }
    let user = table.user.as_ref().map(|name| Arc::<str>::from(name.as_str()));
    if let Some(name) = &table.user {
        check_given_name(name).map_err(|why| error(source, "user", name, &why))?;
        // A client must not forge it.
        if !fields.iter().any(|other: &Arc<str>| other.eq_ignore_ascii_case(name)) {
            fields.extend(user.clone());
        }
    }
    let fields: GivenNames = fields.into_iter().collect();
    let rule = Some(AuthRequest { place, target, fields, user, response_fields });
    Ok(CheckedAuthRequest { rule, authority })
}

/// What `ask` and `path` say.
struct AuthTarget {
    /// The place that is asked. `None`: the route of the target.
    place: Option<String>,
    target: String,
    /// The route of the place.
    authority: Option<Box<RouteConfig>>,
}

/// Checks what is asked.
fn check_ask(
    table: &AuthRequestSection,
    named: &Named<'_>,
    source: &ConfigSource,
) -> Result<AuthTarget, ConfigError> {
    let ask = &table.ask;
    if ask.starts_with('/') {
        check_target(ask).map_err(|why| error(source, "ask", ask, why))?;
        return match &table.path {
            Some(path) => {
                let why = "`path` is for a place; write the complete path in `ask`";
                Err(error(source, "path", path, why))
            }
            None => Ok(AuthTarget { place: None, target: ask.to_string(), authority: None }),
        };
    }
    let place = check_place(ask, named, source)?;
    if !(place.kind.runs_code && place.kind.answers_all) {
        let forms = forms("or", |kind| kind.runs_code && kind.answers_all);
        let why = format!("it must be a path of this site, {forms}");
        return Err(error(source, "ask", ask, &why));
    }
    let target = match &table.path {
        Some(path) => {
            check_target(path).map_err(|why| error(source, "path", path, why))?;
            path.to_string()
        }
        None => "/".to_owned(),
    };
    // A path that no request has to match.
    let nowhere = PathPattern::parse("/").map_err(|why| error(source, "ask", ask, &why))?;
    let name = place.to_string();
    let authority = RouteConfig::unreachable(nowhere, place);
    Ok(AuthTarget { place: Some(name), target, authority: Some(Box::new(authority)) })
}

/// Checks a path that may have a query.
fn check_target(target: &str) -> Result<(), &'static str> {
    let path = target.split('?').next().unwrap_or_default();
    let is_sent = target.starts_with('/')
        && target.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#');
    match is_sent && RequestPath::parse(path).is_ok() {
        true => Ok(()),
        false => Err("it must be a path as in a request, such as `/auth` or `/auth?realm=1`"),
    }
}

fn error(source: &ConfigSource, key: &str, value: &Written<String>, why: &str) -> ConfigError {
    source.error(value.span(), format!("`{key}` of `auth_request` is `{}`: {why}", value.as_str()))
}

/// Checks that the path which a route asks belongs to a route that asks nobody itself. `routes` and
/// `sections` have the same order, by which `table` numbers them.
pub fn check_asked_routes(
    routes: &[RouteConfig],
    table: &RouteTable,
    sections: &[RouteSection],
    source: &ConfigSource,
    errors: &mut ErrorCollector,
) {
    for (section, route) in sections.iter().zip(routes) {
        let Some(AuthRequest { place: None, target, .. }) = &route.rules.auth_request else {
            continue;
        };
        let span = section.auth_request.as_ref().map(Written::span).unwrap_or_default();
        let path = target.split('?').next().unwrap_or_default();
        let asked = RequestPath::parse(path).ok().and_then(|path| table.find_by_path(&path));
        let message = match asked.and_then(|number| routes.get(number)) {
            None => format!("`auth_request` asks `{path}`: no route without `match` has it"),
            Some(asked) if asked.rules.auth_request.is_some() => format!(
                "`auth_request` asks `{path}`, but the route `{}` has an `auth_request` itself; \
                 add a route for `{path}` with `auth_request = false`",
                asked.path
            ),
            Some(_) => continue,
        };
        errors.push(source.error(span, message));
    }
}

impl<'de> Deserialize<'de> for AuthRequestKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AuthRequestVisitor)
    }
}

struct AuthRequestVisitor;

impl<'de> Visitor<'de> for AuthRequestVisitor {
    type Value = AuthRequestKey;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a path such as \"/auth\", false or a table such as { ask = \"/auth\" }")
    }

    fn visit_bool<E: Error>(self, is_on: bool) -> Result<AuthRequestKey, E> {
        match is_on {
            false => Ok(AuthRequestKey::Off),
            true => Err(E::invalid_value(serde::de::Unexpected::Bool(true), &self)),
        }
    }

    fn visit_str<E: Error>(self, ask: &str) -> Result<AuthRequestKey, E> {
        Ok(AuthRequestKey::Ask(ask.to_owned()))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<AuthRequestKey, A::Error> {
        AuthRequestSection::deserialize(MapAccessDeserializer::new(map)).map(AuthRequestKey::Table)
    }
}
