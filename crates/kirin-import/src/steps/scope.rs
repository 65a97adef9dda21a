//! Which requests a step is for.

use toml::{Table, Value};

use crate::steps::path_pattern::PathPattern;

/// Which requests a step is for: hosts, paths and other conditions. All of them must hold.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Scope {
    /// The hosts. Empty: all.
    pub(crate) hosts: Vec<String>,
    /// The paths. Empty: all.
    pub(crate) paths: Vec<PathPattern>,
    /// The `match` of the route.
    pub(crate) conditions: Table,
}

impl Scope {
    /// Returns the scope of these paths.
    pub(crate) fn of_paths(paths: Vec<PathPattern>) -> Self {
        Self { paths, ..Self::default() }
    }

    /// Returns the paths. All paths are one pattern.
    pub(crate) fn patterns(&self) -> Vec<PathPattern> {
        if self.paths.is_empty() { vec![PathPattern::everything()] } else { self.paths.clone() }
    }

    /// Returns the requests that both scopes have, or none if there are none.
    ///
    /// # Errors
    /// Returns what Kirin cannot combine.
    pub(crate) fn both(&self, other: &Self) -> Result<Option<Self>, String> {
        let Some(hosts) = both_hosts(&self.hosts, &other.hosts)? else { return Ok(None) };
        let paths = match (self.paths.is_empty(), other.paths.is_empty()) {
            (true, _) => other.paths.clone(),
            (_, true) => self.paths.clone(),
            _ => both_paths(&self.paths, &other.paths),
        };
        if paths.is_empty() && !(self.paths.is_empty() && other.paths.is_empty()) {
            return Ok(None);
        }
        let mut conditions = self.conditions.clone();
        for (key, value) in &other.conditions {
            let both = match conditions.get(key) {
                None => Some(value.clone()),
                Some(own) => both_values(key, own, value)?,
            };
            let Some(both) = both else { return Ok(None) };
            conditions.insert(key.clone(), both);
        }
        Ok(Some(Self { hosts, paths, conditions }))
    }

    /// Returns whether all requests of another scope are in this one.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        let hosts = self.hosts.is_empty()
            || (!other.hosts.is_empty()
                && other.hosts.iter().all(|host| self.hosts.contains(host)));
        let others = other.patterns();
        let covered = |path: &PathPattern| self.paths.iter().any(|own| own.covers(path));
        let paths = self.paths.is_empty() || others.iter().all(covered);
        hosts && paths && self.conditions.iter().all(|(key, value)| implied(key, value, other))
    }
}

fn both_hosts(one: &[String], other: &[String]) -> Result<Option<Vec<String>>, String> {
    match (one, other) {
        ([], hosts) | (hosts, []) => Ok(Some(hosts.to_vec())),
        _ => {
            let within = |host: &&String, hosts: &[String]| {
                hosts.iter().any(|pattern| host_covers(pattern, host))
            };
            let mut hosts: Vec<_> = one.iter().filter(|host| within(host, other)).collect();
            hosts.extend(other.iter().filter(|host| within(host, one) && !one.contains(host)));
            let hosts: Vec<_> = hosts.into_iter().cloned().collect();
            Ok((!hosts.is_empty()).then_some(hosts))
        }
    }
}

fn both_paths(one: &[PathPattern], other: &[PathPattern]) -> Vec<PathPattern> {
    let pairs = one.iter().flat_map(|path| other.iter().map(move |other| path.both(other)));
    let mut paths: Vec<PathPattern> = Vec::new();
    for path in pairs.flatten() {
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    paths
}

/// Returns the value of a key of `match` that stands for both values, or none if no request has
/// both.
fn both_values(key: &str, one: &Value, other: &Value) -> Result<Option<Value>, String> {
    if one == other {
        return Ok(Some(one.clone()));
    }
    match (key, one, other) {
        ("scheme", ..) => Ok(None),
        ("methods", Value::Array(one), Value::Array(other)) => {
            let both: Vec<_> =
                one.iter().filter(|method| other.contains(method)).cloned().collect();
            Ok((!both.is_empty()).then_some(Value::Array(both)))
        }
        ("not", Value::Table(one), Value::Table(other)) => {
            let mut both = one.clone();
            for (key, value) in other {
                let merged = match both.get(key) {
                    None => value.clone(),
                    Some(own) => either_value(key, own, value)?,
                };
                both.insert(key.clone(), merged);
            }
            Ok(Some(Value::Table(both)))
        }
        (_, Value::Table(_), Value::Table(_)) => both_fields(key, one, other).map(Some),
        _ => Err(format!("two conditions on `{key}` are combined")),
    }
}

/// Returns the value of a key of `not` that forbids what both values forbid.
fn either_value(key: &str, one: &Value, other: &Value) -> Result<Value, String> {
    match (one, other) {
        (Value::Array(one), Value::Array(other)) => {
            let mut both = one.clone();
            both.extend(other.iter().filter(|value| !one.contains(value)).cloned());
            Ok(Value::Array(both))
        }
        _ => both_fields(key, one, other),
    }
}

fn both_fields(key: &str, one: &Value, other: &Value) -> Result<Value, String> {
    let (Value::Table(one), Value::Table(other)) = (one, other) else {
        return if one == other {
            Ok(one.clone())
        } else {
            Err(format!("two conditions on `{key}` are combined"))
        };
    };
    let mut both = one.clone();
    for (name, value) in other {
        if both.get(name).is_some_and(|own| own != value) {
            return Err(format!("two conditions on `{name}` are combined"));
        }
        both.insert(name.clone(), value.clone());
    }
    Ok(Value::Table(both))
}

/// Returns whether a condition holds for all requests of a scope.
fn implied(key: &str, value: &Value, scope: &Scope) -> bool {
    let Some(other) = scope.conditions.get(key) else { return false };
    match (value, other) {
        _ if value == other => true,
        (Value::Array(own), Value::Array(other)) => other.iter().all(|value| own.contains(value)),
        (Value::Table(own), Value::Table(other)) => own.iter().all(|(name, value)| {
            let found = other.get(name);
            match (value, found) {
                // Below `not`, a longer list forbids more.
                (Value::Array(own), Some(Value::Array(other))) => {
                    own.iter().all(|value| other.contains(value))
                }
                _ => found == Some(value),
            }
        }),
        _ => false,
    }
}

/// Returns whether a pattern of hosts matches all hosts that another one matches.
pub(crate) fn host_covers(pattern: &str, host: &str) -> bool {
    let below = |end: &str| !host.starts_with('~') && host.len() > end.len() && host.ends_with(end);
    pattern == host
        || pattern.strip_prefix('*').is_some_and(below)
        || pattern.strip_suffix('*').is_some_and(|start| host.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(text: &str) -> Scope {
        let table: Table = text.parse().expect(text);
        let path = table.get("path").and_then(Value::as_str).and_then(PathPattern::below);
        let conditions = table.get("match").and_then(Value::as_table).cloned().unwrap_or_default();
        Scope { hosts: Vec::new(), paths: path.into_iter().collect(), conditions }
    }

    #[test]
    fn two_scopes_have_all_conditions_of_both() {
        let one = scope(
            "path = '/a'\nmatch = { methods = ['GET', 'POST'], not = { clients = ['::1'] } }",
        );
        let other =
            scope("path = '/a/b'\nmatch = { methods = ['GET'], not = { clients = ['::2'] } }");
        let both = one.both(&other).expect("conditions").expect("requests");
        let expected = scope(
            "path = '/a/b'\nmatch = { methods = ['GET'], not = { clients = ['::1', '::2'] } }",
        );
        assert_eq!(both, expected);
        assert!(one.covers(&both) && other.covers(&both) && !both.covers(&one));
    }

    #[test]
    fn scopes_without_common_requests_are_none() {
        let http = scope("match = { scheme = 'http' }");
        assert_eq!(http.both(&scope("match = { scheme = 'https' }")), Ok(None));
        assert_eq!(scope("path = '/a'").both(&scope("path = '/b'")), Ok(None));
        assert!(
            scope("match = { clients = ['::1'] }")
                .both(&scope("match = { clients = ['::2'] }"))
                .is_err()
        );
    }
}
