//! Conditions of `if`, as scopes of routes.

use std::collections::HashMap;

use toml::{Table, Value};

use crate::steps::{ExpressionPaths, PathPattern, Scope};
use crate::vcl::expressions::{host, methods, names, pattern, without_query};
use crate::vcl::tokens::{Kind, Token, line_of};

/// The most alternatives of a condition.
const MOST_ALTERNATIVES: usize = 64;

/// The most brackets inside each other.
const MOST_DEPTH: usize = 16;

/// The addresses of access lists. `None`: Kirin cannot write the list.
pub(crate) type Lists = HashMap<String, Option<Vec<Value>>>;

/// A condition as far as Kirin has it.
#[derive(Debug, Default)]
pub(crate) struct Condition {
    /// One of them must hold.
    pub(crate) scopes: Vec<Scope>,
    /// The paths are whole segments, and the expression also matches names that only begin so.
    pub(crate) segments: bool,
    /// What makes a request bypass the cache, such as `cookie:a`. It is the whole condition then.
    pub(crate) bypass: Vec<String>,
    /// Whether names of cookies are a part of it, which scopes do not have.
    pub(crate) cookies: bool,
}

/// Reads a condition.
///
/// # Errors
/// Returns what Kirin does not have, and the paths of which it is about, if these are known.
pub(crate) fn read(
    tokens: &[Token],
    lists: &Lists,
) -> Result<Condition, (String, Vec<PathPattern>)> {
    let mut reader = Reader {
        tokens,
        lists,
        position: 0,
        segments: false,
        cookies: false,
        bypass: Vec::new(),
        atoms: 0,
        depth: 0,
    };
    let read = reader.either();
    let complete = reader.position >= tokens.len();
    match read {
        Ok(scopes) if complete => {
            let bypass =
                if reader.atoms == reader.bypass.len() { reader.bypass } else { Vec::new() };
            if reader.cookies && bypass.is_empty() {
                let problem = format!("`{}`", line_of(tokens));
                return Err((problem, paths_of(tokens)));
            }
            Ok(Condition { scopes, segments: reader.segments, bypass, cookies: reader.cookies })
        }
        Ok(_) => Err((format!("`{}`", line_of(tokens)), paths_of(tokens))),
        Err(problem) => Err((problem, paths_of(tokens))),
    }
}

/// Returns the paths that a condition without `||` is about, by the first expression on `req.url`.
fn paths_of(tokens: &[Token]) -> Vec<PathPattern> {
    if tokens.iter().any(|token| token.text == "||") {
        return Vec::new();
    }
    for window in tokens.windows(3) {
        if let [subject, operator, text] = window
            && matches!(subject.text.as_str(), "req.url" | "bereq.url")
            && operator.text == "~"
            && text.kind == Kind::Text
        {
            return ExpressionPaths::read(&without_query(&text.text)).closed();
        }
    }
    Vec::new()
}

struct Reader<'a> {
    tokens: &'a [Token],
    position: usize,
    lists: &'a Lists,
    segments: bool,
    cookies: bool,
    bypass: Vec<String>,
    atoms: usize,
    depth: usize,
}

impl Reader<'_> {
    fn either(&mut self) -> Result<Vec<Scope>, String> {
        let mut scopes = self.both()?;
        while self.take("||") {
            scopes.extend(self.both()?);
        }
        if scopes.len() > MOST_ALTERNATIVES {
            return Err("too many alternatives".to_owned());
        }
        // Alternatives that differ only in their paths are one.
        let mut merged: Vec<Scope> = Vec::new();
        for scope in scopes {
            let same = merged.iter_mut().find(|other| {
                other.hosts == scope.hosts
                    && other.conditions == scope.conditions
                    && !other.paths.is_empty()
                    && !scope.paths.is_empty()
            });
            match same {
                Some(other) => other.paths.extend(scope.paths),
                None => merged.push(scope),
            }
        }
        Ok(merged)
    }

    fn both(&mut self) -> Result<Vec<Scope>, String> {
        let mut scopes = self.atom()?;
        while self.take("&&") {
            let others = self.atom()?;
            let mut both = Vec::new();
            for scope in &scopes {
                for other in &others {
                    both.extend(scope.both(other)?);
                }
            }
            if both.len() > MOST_ALTERNATIVES {
                return Err("too many alternatives".to_owned());
            }
            scopes = both;
        }
        Ok(scopes)
    }

    fn atom(&mut self) -> Result<Vec<Scope>, String> {
        let negated = self.take("!");
        if self.take("(") {
            self.depth += 1;
            if negated || self.depth > MOST_DEPTH {
                return Err("a condition in brackets that must not hold".to_owned());
            }
            let scopes = self.either()?;
            self.depth -= 1;
            return if self.take(")") { Ok(scopes) } else { Err("a `)` is missing".to_owned()) };
        }
        self.atoms += 1;
        let Some(subject) = self.next() else { return Err("a condition is missing".to_owned()) };
        let operator = self.tokens.get(self.position).map(|token| token.text.clone());
        let operator = operator.filter(|o| matches!(o.as_str(), "==" | "!=" | "~" | "!~"));
        let value = match &operator {
            Some(_) => {
                self.position += 1;
                self.next()
            }
            None => None,
        };
        let positive = !negated != matches!(operator.as_deref(), Some("!=" | "!~"));
        let is_match = matches!(operator.as_deref(), Some("~" | "!~"));
        let text = value.as_ref().map_or("", |value| value.text.as_str());
        let problem = || {
            let operator = operator.as_deref().unwrap_or_default();
            let condition = format!("{} {operator} {text}", subject.text);
            format!("`{}` is not there in Kirin", condition.trim_end())
        };
        let scope = match subject.text.as_str() {
            "req.url" | "bereq.url" if positive => self.url(text, is_match).ok_or_else(problem)?,
            "req.http.host" | "req.http.Host" if positive => {
                host(text, is_match).ok_or_else(problem)?
            }
            "req.method" | "req.request" | "bereq.method" if value.is_some() => {
                let methods = methods(text, is_match).ok_or_else(problem)?;
                condition("methods", Value::Array(methods), positive)
            }
            "client.ip" | "remote.ip" if is_match => {
                let clients = self.lists.get(text).cloned().flatten().ok_or_else(problem)?;
                condition("clients", Value::Array(clients), positive)
            }
            "req.http.X-Forwarded-Proto" if !is_match && matches!(text, "http" | "https") => {
                let other = if text == "http" { "https" } else { "http" };
                condition("scheme", Value::from(if positive { text } else { other }), true)
            }
            name => match name.strip_prefix("req.http.").or(name.strip_prefix("bereq.http.")) {
                Some(field) => {
                    self.field(field, value.as_ref(), is_match, positive).ok_or_else(problem)?
                }
                None => return Err(problem()),
            },
        };
        Ok(vec![scope])
    }

    fn url(&mut self, text: &str, is_match: bool) -> Option<Scope> {
        let paths = if is_match {
            match ExpressionPaths::read(&without_query(text)) {
                ExpressionPaths::Same(paths) => paths,
                ExpressionPaths::Segments(path) => {
                    self.segments = true;
                    vec![path]
                }
                _ => return None,
            }
        } else {
            vec![PathPattern::exact(text)?]
        };
        let all = paths == [PathPattern::everything()];
        Some(Scope::of_paths(if all { Vec::new() } else { paths }))
    }

    fn field(
        &mut self,
        name: &str,
        value: Option<&Token>,
        is_match: bool,
        positive: bool,
    ) -> Option<Scope> {
        let cookie = name.eq_ignore_ascii_case("cookie");
        let wanted = match value {
            None => "*".to_owned(),
            Some(value) if !is_match => value.text.clone(),
            Some(value) => {
                let names = names(&value.text)?;
                if cookie && positive {
                    self.bypass.extend(names.iter().map(|name| format!("cookie:{name}")));
                    self.atoms = self.atoms.saturating_add(names.len().saturating_sub(1));
                }
                pattern(&value.text).unwrap_or_default()
            }
        };
        if value.is_none() && positive {
            self.bypass.push(format!("header:{name}"));
        }
        if cookie && is_match {
            // Only a name is known, which `bypass` has.
            self.cookies = true;
            return positive.then(Scope::default);
        }
        if wanted.is_empty() || wanted.trim_matches('*').contains('*') {
            return None;
        }
        let fields = Table::from_iter([(name.to_owned(), Value::from(wanted))]);
        Some(condition("headers", Value::Table(fields), positive))
    }

    fn take(&mut self, sign: &str) -> bool {
        let found = self
            .tokens
            .get(self.position)
            .is_some_and(|token| token.kind == Kind::Sign && token.text == sign);
        self.position += usize::from(found);
        found
    }

    fn next(&mut self) -> Option<Token> {
        let token = self.tokens.get(self.position).cloned();
        self.position += 1;
        token
    }
}

/// Returns the scope of a condition that must hold, or that must not.
fn condition(key: &str, value: Value, positive: bool) -> Scope {
    let own = Table::from_iter([(key.to_owned(), value)]);
    let conditions =
        if positive { own } else { Table::from_iter([("not".to_owned(), Value::Table(own))]) };
    Scope { conditions, ..Scope::default() }
}

/// Returns the scope of all requests that another one does not have, if it has one condition.
pub(crate) fn negated(scope: &Scope) -> Option<Scope> {
    if !scope.paths.is_empty() || !scope.hosts.is_empty() || scope.conditions.len() != 1 {
        return None;
    }
    let conditions = match scope.conditions.get("not") {
        Some(Value::Table(inner)) if inner.len() == 1 => inner.clone(),
        Some(_) => return None,
        None => Table::from_iter([("not".to_owned(), Value::Table(scope.conditions.clone()))]),
    };
    Some(Scope { conditions, ..Scope::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vcl::tokens::tokens;

    fn written(text: &str) -> String {
        let lists = Lists::from_iter([("in".to_owned(), Some(vec![Value::from("10.0.0.0/8")]))]);
        let tokens = tokens(text).expect(text);
        match read(&tokens, &lists) {
            Ok(condition) => {
                let scope = |scope: &Scope| {
                    let paths: Vec<_> = scope.paths.iter().map(PathPattern::to_string).collect();
                    format!(
                        "{} {} {}",
                        scope.hosts.join(","),
                        paths.join(","),
                        Value::Table(scope.conditions.clone())
                    )
                };
                let scopes: Vec<_> = condition.scopes.iter().map(scope).collect();
                format!("{} {}", scopes.join(" | "), condition.bypass.join(",")).trim().to_owned()
            }
            Err((_, paths)) => {
                let paths: Vec<_> = paths.iter().map(PathPattern::to_string).collect();
                format!("? {}", paths.join(",")).trim().to_owned()
            }
        }
    }

    #[test]
    fn conditions_are_scopes() {
        for (text, expected) in [
            ("req.url ~ \"^/admin/\"", "/admin {}"),
            ("req.url ~ \"\\.(png|css)(\\?.*)?$\"", "*.png,*.css {}"),
            ("req.url ~ \"^/a/\" || req.url == \"/b\"", "/a,= /b {}"),
            ("req.http.host ~ \"^(www\\.)?a\\.example$\"", "www.a.example,a.example  {}"),
            (
                "req.method != \"GET\" && req.method != \"HEAD\"",
                "{ not = { methods = [\"GET\", \"HEAD\"] } }",
            ),
            ("!client.ip ~ in", "{ not = { clients = [\"10.0.0.0/8\"] } }"),
            ("req.http.Cookie ~ \"(a|b)=\"", "{} cookie:a,cookie:b"),
            (
                "req.http.Authorization",
                "{ headers = { Authorization = \"*\" } } header:Authorization",
            ),
            (
                "req.http.X-A == \"b\" && (req.url ~ \"^/a/\" || req.url ~ \"^/b/\")",
                "/a,/b { headers = { X-A = \"b\" } }",
            ),
            ("req.url ~ \"^/a/[0-9]+\" && req.restarts == 0", "? /a"),
            ("std.healthy(a)", "?"),
        ] {
            assert_eq!(written(text), expected, "{text}");
        }
    }
}
