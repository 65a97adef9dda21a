//! Matchers: `/path/*`, `@name` and their conditions.

use std::collections::HashMap;

use toml::{Table, Value};

use crate::caddy::tree::Directive;
use crate::steps::{PathPattern, PathRead, Scope, network};
use crate::unit::host_pattern;

/// The networks that `private_ranges` stands for.
pub(crate) const PRIVATE_RANGES: [&str; 6] =
    ["192.168.0.0/16", "172.16.0.0/12", "10.0.0.0/8", "127.0.0.0/8", "fd00::/8", "::1"];

/// Which requests a directive is for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Matcher {
    /// The requests, or more if there is a problem.
    pub(crate) scope: Scope,
    /// What Kirin cannot write.
    pub(crate) problem: Option<String>,
    /// What differs in small things.
    pub(crate) remark: Option<String>,
    /// Whether the request must be for a file that exists, and nothing else.
    pub(crate) for_files: bool,
}

/// The matchers with names.
pub(crate) type Named = HashMap<String, Matcher>;

impl Matcher {
    /// Reads the matcher of a directive, if its first argument is one. Returns it with the number
    /// of arguments that it takes.
    pub(crate) fn of(directive: &Directive, named: &Named, prefix: &str) -> (Self, usize) {
        match directive.argument(0) {
            Some("*") => (Self::default(), 1),
            Some(path) if path.starts_with('/') => (Self::path(&[path], prefix), 1),
            Some(name) if name.starts_with('@') => {
                let found = named.get(name).cloned();
                let problem = Some(format!("there is no matcher `{name}`"));
                (found.unwrap_or_else(|| Self { problem, ..Self::default() }), 1)
            }
            _ => (Self::default(), 0),
        }
    }

    /// Reads a matcher with a name: in one line, or with a block.
    pub(crate) fn named(directive: &Directive, prefix: &str) -> Self {
        let mut matcher = Self::default();
        if let Some(kind) = directive.argument(0) {
            let values: Vec<_> = directive.arguments().iter().skip(1).map(String::as_str).collect();
            matcher.add(kind, &values, directive.inner(), prefix);
        } else {
            // Lines of one of these kinds are alternatives. Other kinds must all hold.
            let together = ["path", "host", "method", "remote_ip", "client_ip"];
            for kind in together {
                let lines = directive.inner().iter().filter(|inner| inner.name() == kind);
                let values = lines.flat_map(|inner| inner.arguments().iter().map(String::as_str));
                let values: Vec<_> = values.collect();
                if !values.is_empty() {
                    matcher.add(kind, &values, &[], prefix);
                }
            }
            for inner in directive.inner().iter().filter(|i| !together.contains(&i.name())) {
                let values: Vec<_> = inner.arguments().iter().map(String::as_str).collect();
                matcher.add(inner.name(), &values, inner.inner(), prefix);
            }
        }
        matcher
    }

    /// Returns the matcher of paths.
    pub(crate) fn path(patterns: &[&str], prefix: &str) -> Self {
        let mut matcher = Self::default();
        for pattern in patterns {
            let full = match pattern.strip_prefix('*') {
                _ if prefix.is_empty() || !pattern.starts_with(['/', '*']) => (*pattern).to_owned(),
                Some(end) => format!("{prefix}/*{end}"),
                None => format!("{prefix}{pattern}"),
            };
            let read = PathRead::of_stars(&full);
            if read.problem.is_some() && read.paths.is_empty() {
                matcher.scope.paths.push(below(prefix));
            }
            matcher.scope.paths.extend(read.paths);
            matcher.problem = matcher.problem.or(read.problem);
            matcher.remark = matcher.remark.or(read.remark);
        }
        matcher
    }

    /// Adds a condition. All conditions must hold.
    fn add(&mut self, kind: &str, values: &[&str], block: &[Directive], prefix: &str) {
        if kind == "file" && values.len() < 2 && block.is_empty() && *self == Self::default() {
            self.for_files = true;
        }
        let read = condition(kind, values, block, prefix);
        let both = read.and_then(|other| {
            self.remark = self.remark.take().or(other.remark);
            self.problem = self.problem.take().or(other.problem);
            self.scope.both(&other.scope)
        });
        match both {
            Ok(Some(scope)) => self.scope = scope,
            Ok(None) => self.problem = Some(format!("`{kind}` matches nothing here")),
            Err(problem) => self.problem = Some(problem),
        }
    }
}

impl PartialEq for Matcher {
    fn eq(&self, other: &Self) -> bool {
        self.scope == other.scope && self.problem == other.problem
    }
}

/// Reads a condition.
fn condition(
    kind: &str,
    values: &[&str],
    block: &[Directive],
    prefix: &str,
) -> Result<Matcher, String> {
    let value = |key: &str, value: Value| {
        let conditions = Table::from_iter([(key.to_owned(), value)]);
        let scope = Scope { conditions, ..Scope::default() };
        Ok(Matcher { scope, ..Matcher::default() })
    };
    match kind {
        "path" => Ok(Matcher::path(values, prefix)),
        "path_regexp" => Ok(path_regexp(values, prefix)),
        "host" => {
            let hosts = values.iter().map(|host| host_pattern(host)).collect::<Result<_, _>>()?;
            let scope = Scope { hosts, ..Scope::default() };
            Ok(Matcher { scope, ..Matcher::default() })
        }
        "method" => {
            let methods: Vec<_> = values.iter().map(|v| Value::from(v.to_uppercase())).collect();
            value("methods", Value::Array(methods))
        }
        "protocol" => match values {
            [scheme @ ("http" | "https")] => value("scheme", Value::from(*scheme)),
            _ => Err("`protocol` is `http` or `https` in Kirin".to_owned()),
        },
        "remote_ip" | "client_ip" => value("clients", Value::Array(clients(values)?)),
        "header" => field("headers", values),
        "query" => match values {
            [pairs] if !pairs.is_empty() => {
                let (name, text) = pairs.split_once('=').unwrap_or((pairs, "*"));
                field("query", &[name, text])
            }
            _ => Err("`query` with several values".to_owned()),
        },
        "not" => not(values, block, prefix),
        "file" => Err("`file`: Kirin has a list of places, `try`, for that".to_owned()),
        "expression" | "header_regexp" | "vars" | "vars_regexp" | "tls" => {
            Err(format!("`{kind}` is not there in Kirin"))
        }
        _ => Err(format!("`{kind}` is not known here")),
    }
}

fn path_regexp(values: &[&str], prefix: &str) -> Matcher {
    let expression = values.last().copied().unwrap_or_default();
    let read = PathRead::of_expression(expression, expression);
    let mut paths = read.paths;
    if paths.is_empty() || !prefix.is_empty() {
        paths = vec![below(prefix)];
    }
    let problem = read.problem.or((!prefix.is_empty())
        .then(|| format!("`{expression}`: the expression is inside of `handle_path`")));
    Matcher { scope: Scope::of_paths(paths), problem, remark: read.remark, for_files: false }
}

fn below(prefix: &str) -> PathPattern {
    PathPattern::below(prefix).unwrap_or_else(PathPattern::everything)
}

pub(crate) fn clients(values: &[&str]) -> Result<Vec<Value>, String> {
    let mut clients = Vec::new();
    for value in values {
        match *value {
            "private_ranges" => clients.extend(PRIVATE_RANGES.map(Value::from)),
            "forwarded" => return Err("`remote_ip forwarded`: name the proxies".to_owned()),
            value => match network(value) {
                Some(network) => clients.push(Value::from(network)),
                None => return Err(format!("`{value}` is no address and no network")),
            },
        }
    }
    Ok(clients)
}

/// Reads a condition on a field or an argument.
fn field(key: &str, values: &[&str]) -> Result<Matcher, String> {
    let (name, value) = match values {
        [name] => match name.strip_prefix('!') {
            Some(name) => (name, Value::from(false)),
            None => (*name, Value::from("*")),
        },
        [name, value] => {
            let inner = value.trim_matches('*');
            if inner.contains(['*', '{']) {
                return Err(format!("`{value}`: Kirin has `*` at the beginning and the end only"));
            }
            (*name, Value::from(*value))
        }
        _ => return Err("several values of a field".to_owned()),
    };
    let fields = Value::Table(Table::from_iter([(name.to_owned(), value)]));
    let conditions = Table::from_iter([(key.to_owned(), fields)]);
    Ok(Matcher { scope: Scope { conditions, ..Scope::default() }, ..Matcher::default() })
}

/// Reads `not`, in one line or with a block.
fn not(values: &[&str], block: &[Directive], prefix: &str) -> Result<Matcher, String> {
    let inner = match (values.split_first(), block) {
        (Some((kind, values)), []) => condition(kind, values, &[], prefix)?,
        (None, [only]) => {
            let values: Vec<_> = only.arguments().iter().map(String::as_str).collect();
            condition(only.name(), &values, &[], prefix)?
        }
        _ => return Err("`not` of several conditions".to_owned()),
    };
    if inner.problem.is_some() || !inner.scope.paths.is_empty() || !inner.scope.hosts.is_empty() {
        return Err("`not` of paths and hosts: Kirin takes the more specific path".to_owned());
    }
    if inner.scope.conditions.contains_key("not") {
        return Err("`not` of `not`".to_owned());
    }
    let conditions = Table::from_iter([("not".to_owned(), Value::Table(inner.scope.conditions))]);
    Ok(Matcher { scope: Scope { conditions, ..Scope::default() }, ..Matcher::default() })
}
