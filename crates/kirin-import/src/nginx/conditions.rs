//! Conditions of `if`, as the `match` of a route.

use toml::{Table, Value};

use super::context::Context;
use super::directive::Directive;
use super::paths::{Paths, paths};
use super::text_patterns::{TextPatterns, exact, patterns};
use super::units::{text, texts};
use super::variables::{field_name, only_variable};

/// The most maps that depend on each other.
const MAX_MAPS: usize = 4;

/// When a condition holds.
#[derive(Debug, Clone, Default)]
pub struct Condition {
    /// The values of `match`, of which one must hold.
    pub any_of: Vec<Table>,
    /// The paths for which it holds, if it is about the path.
    pub paths: Option<Paths>,
    /// Whether the spelling of values makes a difference that it does not make in nginx.
    pub is_narrower: bool,
}

/// Reads the condition of a block `if`. An error says why Kirin cannot have it.
pub fn condition<'a>(block: &'a Directive, context: &Context<'a>) -> Result<Condition, String> {
    let joined = block.args.join(" ");
    let inner = joined.trim().strip_prefix('(').and_then(|text| text.strip_suffix(')'));
    let inner = inner.unwrap_or(&joined).trim();
    let (subject, rest) = inner.split_once([' ', '\t']).unwrap_or((inner, ""));
    let rest = rest.trim();
    let Some(name) = only_variable(subject) else {
        return Err(format!("`{subject}` is a look at the file system or not one variable"));
    };
    let sign = ["!~*", "!~", "~*", "!=", "~", "="].into_iter().find(|sign| rest.starts_with(sign));
    let value = sign.map_or("", |sign| rest.get(sign.len()..).unwrap_or_default().trim());
    let test = match sign {
        None => Test { kind: TestKind::IsSet, is_negated: false },
        Some("=") => Test { kind: TestKind::Equals(value), is_negated: false },
        Some("!=") => Test { kind: TestKind::Equals(value), is_negated: true },
        Some(sign) => Test {
            kind: TestKind::Matches { expression: value, ignores_case: sign.ends_with('*') },
            is_negated: sign.starts_with('!'),
        },
    };
    of_variable(name, test, context, 0)
}

/// What is compared with a variable.
#[derive(Debug, Clone, Copy)]
struct Test<'t> {
    kind: TestKind<'t>,
    is_negated: bool,
}

#[derive(Debug, Clone, Copy)]
enum TestKind<'t> {
    /// It has a value, and not `0`.
    IsSet,
    /// It has this value.
    Equals(&'t str),
    /// An expression matches it.
    Matches { expression: &'t str, ignores_case: bool },
}

impl Test<'_> {
    /// Returns whether a value that is known passes the test. Returns `None` if that is not known.
    fn passes(self, value: &str) -> Option<bool> {
        let passes = match self.kind {
            TestKind::IsSet => !matches!(value, "" | "0"),
            TestKind::Equals(wanted) => value == wanted,
            TestKind::Matches { .. } => return None,
        };
        Some(passes != self.is_negated)
    }

    /// Returns the patterns of values.
    fn patterns(self) -> Option<TextPatterns> {
        match self.kind {
            TestKind::IsSet => Some(TextPatterns::any()),
            // A variable on the right side has another value for each request.
            TestKind::Equals(value) if value.contains('$') => None,
            TestKind::Equals(value) => exact(value),
            TestKind::Matches { expression, ignores_case } => patterns(expression, ignores_case),
        }
    }
}

fn of_variable<'a>(
    name: &str,
    test: Test<'_>,
    context: &Context<'a>,
    depth: usize,
) -> Result<Condition, String> {
    let unknown = || format!("`match` has no `${name}` of this kind");
    if depth > MAX_MAPS {
        return Err(unknown());
    }
    if let Some(map) = context.globals.named("map", name) {
        context.carried(map);
        return of_map(map, test, context, depth);
    }
    if let Some(geo) = context.globals.named("geo", name) {
        context.carried(geo);
        return of_geo(geo, test).ok_or_else(unknown);
    }
    let field = |key: &str, name: String| of_texts(key, &name, test).ok_or_else(unknown);
    match name {
        "request_method" => of_methods(test).ok_or_else(unknown),
        "scheme" | "https" => of_scheme(name, test).ok_or_else(unknown),
        "remote_addr" => of_clients(test).ok_or_else(unknown),
        "request_uri" | "uri" | "document_uri" => of_path(test).ok_or_else(unknown),
        "content_type" => field("headers", "Content-Type".into()),
        "http_host" | "host" => Err("`Host` is no condition: write a [[site]]".into()),
        "http_cookie" => of_cookie_field(test).ok_or_else(unknown),
        _ => {
            if let Some(name) = name.strip_prefix("http_") {
                return field("headers", field_name(name));
            }
            if let Some(name) = name.strip_prefix("arg_") {
                return field("query", name.to_owned());
            }
            match name.strip_prefix("cookie_") {
                Some(name) => field("cookies", name.to_owned()),
                None => Err(unknown()),
            }
        }
    }
}

/// Returns a condition on one key of `match`, or its contrary.
fn with(key: &str, value: Value, is_negated: bool) -> Table {
    let table = Table::from_iter([(key.to_owned(), value)]);
    match is_negated {
        false => table,
        true => Table::from_iter([("not".to_owned(), Value::Table(table))]),
    }
}

/// Returns the condition that a field, an argument or a cookie has one of some values.
fn of_texts(key: &str, name: &str, test: Test<'_>) -> Option<Condition> {
    let entry = |value: Value| Value::Table(Table::from_iter([(name.to_owned(), value)]));
    if matches!(test.kind, TestKind::Equals("")) {
        // nginx makes no difference between a field without text and none.
        let values = match test.is_negated {
            true => vec![text("*")],
            false => vec![Value::Boolean(false), text("")],
        };
        let any_of = values.into_iter().map(|value| with(key, entry(value), false)).collect();
        return Some(Condition { any_of, ..Condition::default() });
    }
    let found = test.patterns()?;
    if test.is_negated && found.patterns.len() > 1 {
        // None of several values: each of them cannot be written for the same name.
        return None;
    }
    let conditions =
        found.patterns.iter().map(|value| with(key, entry(text(value)), test.is_negated));
    Some(Condition { any_of: conditions.collect(), is_narrower: found.is_narrower, paths: None })
}

fn of_methods(test: Test<'_>) -> Option<Condition> {
    let methods: Vec<String> = match test.kind {
        TestKind::IsSet => return None,
        TestKind::Equals(method) => vec![method.to_owned()],
        TestKind::Matches { expression, .. } => patterns(expression, false)?.patterns,
    };
    let mut names: Vec<_> =
        methods.iter().map(|method| method.trim_matches('*').to_owned()).collect();
    if names
        .iter()
        .any(|name| name.is_empty() || !name.chars().all(|c| c.is_ascii_uppercase() || c == '-'))
    {
        return None;
    }
    names.dedup();
    Some(Condition {
        any_of: vec![with("methods", texts(names), test.is_negated)],
        ..Condition::default()
    })
}

fn of_scheme(name: &str, test: Test<'_>) -> Option<Condition> {
    let is_https = match (name, test.kind) {
        ("https", TestKind::Equals("on") | TestKind::IsSet) => true,
        ("https", TestKind::Equals("")) => false,
        ("scheme", TestKind::Equals("https")) => true,
        ("scheme", TestKind::Equals("http")) => false,
        _ => return None,
    };
    let scheme = if is_https == test.is_negated { "http" } else { "https" };
    Some(Condition { any_of: vec![with("scheme", text(scheme), false)], ..Condition::default() })
}

fn of_clients(test: Test<'_>) -> Option<Condition> {
    let TestKind::Equals(address) = test.kind else { return None };
    let address = super::network::network(address)?;
    Some(Condition {
        any_of: vec![with("clients", texts([address]), test.is_negated)],
        ..Condition::default()
    })
}

fn of_path(test: Test<'_>) -> Option<Condition> {
    if test.is_negated {
        return None;
    }
    let found = match test.kind {
        TestKind::IsSet => return None,
        TestKind::Equals(path) if path.starts_with('/') && !path.contains('?') => {
            Paths { forms: vec![super::paths::Form::exact(path)], ..Paths::default() }
        }
        TestKind::Equals(_) => return None,
        TestKind::Matches { expression, ignores_case } => paths(expression, ignores_case)?,
    };
    let is_narrower = !found.missing.is_empty();
    Some(Condition { any_of: Vec::new(), paths: Some(found), is_narrower })
}

/// Returns the condition for `$http_cookie ~ "name="`.
fn of_cookie_field(test: Test<'_>) -> Option<Condition> {
    let mut condition = Condition { is_narrower: true, ..Condition::default() };
    if test.is_negated {
        return None;
    }
    for pattern in test.patterns()?.patterns {
        let name = pattern.trim_matches('*');
        let (name, value) = match name.split_once('=') {
            Some((name, "")) => (name, "*".to_owned()),
            Some((name, value)) => (name, format!("{value}*")),
            None => return None,
        };
        let entry = Table::from_iter([(name.to_owned(), text(value))]);
        condition.any_of.push(with("cookies", Value::Table(entry), false));
    }
    Some(condition)
}

/// Returns the condition that a map gives a value that passes a test.
fn of_map<'a>(
    map: &'a Directive,
    test: Test<'_>,
    context: &Context<'a>,
    depth: usize,
) -> Result<Condition, String> {
    let why = || format!("the map of `{}` has entries that `match` cannot have", map.arg(1));
    let source = only_variable(map.arg(0)).ok_or_else(why)?;
    let mut passing = Vec::new();
    let mut failing = Vec::new();
    let mut default = "";
    for entry in map.inside() {
        match entry.name.as_str() {
            "default" => default = entry.arg(0),
            "hostnames" | "volatile" | "include" => {}
            _ => {
                let passes = test.passes(entry.arg(0)).ok_or_else(why)?;
                if passes { &mut passing } else { &mut failing }.push(entry);
            }
        }
    }
    let default_passes = test.passes(default).ok_or_else(why)?;
    let (entries, is_negated) = match default_passes {
        false => (passing, false),
        true => (failing, true),
    };
    if is_negated && entries.len() > 1 {
        return Err(why());
    }
    let mut all = Condition::default();
    for entry in entries {
        let kind = match entry.name.strip_prefix('~') {
            Some(rest) => match rest.strip_prefix('*') {
                Some(expression) => TestKind::Matches { expression, ignores_case: true },
                None => TestKind::Matches { expression: rest, ignores_case: false },
            },
            None => TestKind::Equals(&entry.name),
        };
        let one = of_variable(source, Test { kind, is_negated }, context, depth + 1)?;
        if one.paths.is_some() {
            return Err(why());
        }
        all.any_of.extend(one.any_of);
        all.is_narrower |= one.is_narrower;
    }
    if all.any_of.is_empty() { Err(why()) } else { Ok(all) }
}

/// Returns the condition that a geo gives a value that passes a test.
fn of_geo(geo: &Directive, test: Test<'_>) -> Option<Condition> {
    if geo.args.len() > 1 {
        // It looks at another variable than the client's address.
        return None;
    }
    let (mut passing, mut failing, mut default) = (Vec::new(), Vec::new(), "");
    for entry in geo.inside() {
        match entry.name.as_str() {
            "default" => default = entry.arg(0),
            "ranges" | "delete" | "proxy" | "proxy_recursive" | "include" => return None,
            address => {
                let passes = test.passes(entry.arg(0))?;
                let network = super::network::network(address)?;
                if passes { &mut passing } else { &mut failing }.push(network);
            }
        }
    }
    let is_negated = test.passes(default)?;
    // A network inside of another one with another value cannot be told apart.
    if !passing.is_empty() && !failing.is_empty() {
        return None;
    }
    let networks = if is_negated { failing } else { passing };
    (!networks.is_empty()).then(|| Condition {
        any_of: vec![with("clients", texts(networks), is_negated)],
        ..Condition::default()
    })
}
