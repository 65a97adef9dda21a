//! `RewriteRule` and `RewriteCond` of the usual kinds.

use toml::{Table, Value};

use crate::apache::tree::Directive;
use crate::draft::one_line;
use crate::report::Outcome;
use crate::section::Section;
use crate::steps::{ExpressionPaths, PathPattern, Scope, is_host};
use crate::text::without_variables;

/// What a rule becomes.
#[derive(Debug)]
pub(crate) enum Rule {
    /// An answer to requests.
    Answer(Scope, Section),
    /// A closed route, with the reason.
    Closed(Scope, String),
    /// A proxy to a server: its URL, and the path that servers see.
    Proxy(Scope, String),
    /// Paths that are no files go to a script or page of the directory.
    Front(String),
    /// Nothing.
    None,
}

/// Rules in their order, with the conditions before each.
#[derive(Debug, Default)]
pub(crate) struct Rewriter {
    on: bool,
    conditions: Vec<Directive>,
    /// The path of the directory of the rules, without a slash at its end. `None`: they are rules
    /// of a server, whose expressions have the complete path.
    directory: Option<String>,
}

impl Rewriter {
    /// Returns the reader of the rules of a directory, which is at this path.
    pub(crate) fn of_directory(path: String) -> Self {
        Self { directory: Some(path), ..Self::default() }
    }

    /// Reads a directive. `None`: it is not about rewriting.
    pub(crate) fn read(&mut self, directive: &Directive) -> Option<(Rule, Outcome)> {
        let by_itself = |text: &str| Some((Rule::None, Outcome::ByItself(text.to_owned())));
        match directive.name.as_str() {
            "rewriteengine" => {
                self.on = directive.argument(0).eq_ignore_ascii_case("on");
                by_itself("routes are always there")
            }
            "rewritebase" => by_itself("a route has the complete path"),
            "rewritecond" => {
                self.conditions.push(directive.clone());
                by_itself("it is read with its `RewriteRule`")
            }
            "rewriterule" => {
                let conditions = std::mem::take(&mut self.conditions);
                if !self.on {
                    return by_itself("`RewriteEngine` is off");
                }
                Some(self.rule(directive, &conditions))
            }
            "rewritemap" | "rewriteoptions" => {
                let text = "write a table of `redirects` (docs/routes.md)";
                Some((Rule::None, Outcome::LeftOut(text.to_owned())))
            }
            _ => None,
        }
    }

    fn rule(&self, rule: &Directive, conditions: &[Directive]) -> (Rule, Outcome) {
        let (expression, to) = (rule.argument(0), rule.argument(1));
        let flags = rule.argument(2).trim_matches(['[', ']']).to_owned();
        let flags: Vec<String> =
            flags.split(',').map(|flag| flag.trim().to_ascii_uppercase()).collect();
        let has = |names: &[&str]| {
            flags.iter().any(|flag| names.contains(&flag.split('=').next().unwrap_or_default()))
        };
        let refuses = has(&["F", "FORBIDDEN", "G", "GONE"]);
        let case = has(&["NC", "NOCASE"]);
        if to == "-" && !refuses {
            return (Rule::None, Outcome::ByItself("it changes no path".to_owned()));
        }
        if let Some(front) = self.front(expression, to, conditions) {
            let text = "Files come first, and all other paths go to it.";
            return (Rule::Front(front), Outcome::Carried(text.to_owned()));
        }
        let paths = if expression.starts_with('!') {
            ExpressionPaths::Unknown
        } else {
            ExpressionPaths::read(&self.complete(expression))
        };
        let scope = scope(conditions, &paths);
        let scope = match scope {
            Ok(scope) if !(case && refuses) => scope,
            Ok(_) => return left_out(refuses, &paths, "Kirin compares paths by case"),
            Err(problem) => return left_out(refuses, &paths, &problem),
        };
        let carried = |text: &str| Outcome::Carried(text.to_owned());
        if refuses {
            let mut route = Section::default();
            route.set("deny", 403);
            return (Rule::Answer(scope, route), carried("With 403."));
        }
        if has(&["P", "PROXY"]) {
            return (Rule::Proxy(scope, to.to_owned()), carried(""));
        }
        let status = flags.iter().find_map(|flag| {
            let (name, status) = flag.split_once('=').unwrap_or((flag, "302"));
            matches!(name, "R" | "REDIRECT").then(|| status_of(status))
        });
        let absolute = to.starts_with("http://") || to.starts_with("https://");
        let status = status.or(absolute.then_some(Some(302)));
        let Some(target) = self.target(to, &scope) else {
            return left_out(false, &paths, "the target has groups or variables that Kirin lacks");
        };
        let mut route = Section::default();
        match status {
            Some(Some(status)) => {
                route.set("redirect", target);
                route.set("redirect_status", status);
                (Rule::Answer(scope, route), carried("Kirin keeps the query."))
            }
            Some(None) => left_out(true, &paths, "another status than those of redirects"),
            None => left_out(
                false,
                &paths,
                "a rule inside of the server: write `rewrite` into the route (docs/routes.md)",
            ),
        }
    }

    /// Returns an expression of the complete path.
    fn complete(&self, expression: &str) -> String {
        let Some(directory) = &self.directory else { return expression.to_owned() };
        let escaped = directory.replace('.', "\\.");
        match expression.strip_prefix('^') {
            Some(rest) => format!("^{escaped}/{rest}"),
            None if directory.is_empty() => expression.to_owned(),
            None if matches!(expression, "." | ".*" | "(.*)" | "") => format!("^{escaped}/"),
            None => format!("^{escaped}/.*{expression}"),
        }
    }

    /// Returns the script or page to which all paths that are no files go.
    fn front(&self, expression: &str, to: &str, conditions: &[Directive]) -> Option<String> {
        let all =
            ["^", ".", "^.*$", "^(.*)$", "(.*)", ".*", "^/?(.*)$", "^.+$", "^(.+)$", "^/(.*)$"];
        let is_file = |condition: &Directive| {
            condition.argument(0).contains("FILENAME")
                && matches!(condition.argument(1), "!-f" | "!-d" | "!-l")
                || condition.argument(0).contains("REQUEST_URI")
                    && condition.argument(1).starts_with('!')
        };
        let files = conditions.iter().any(|condition| condition.argument(1) == "!-f");
        let page = to.split('?').next().unwrap_or_default().trim_start_matches('/');
        let page = page.strip_suffix("/$1").unwrap_or(page);
        let plain = !page.is_empty() && !page.contains(['$', '%', ':', '/']);
        let good = files && all.contains(&expression) && conditions.iter().all(is_file) && plain;
        good.then(|| page.to_owned())
    }

    /// Returns the target of a redirect, with the groups and variables of Apache in Kirin's words.
    fn target(&self, to: &str, scope: &Scope) -> Option<String> {
        let to = to.strip_suffix('?').unwrap_or(to);
        let to = match self.directory.as_deref() {
            Some(_) if to.starts_with('/') || to.contains("://") => to.to_owned(),
            Some(directory) => format!("{directory}/{to}"),
            None => to.to_owned(),
        };
        let paths = scope.patterns();
        let ends = ["%{REQUEST_URI}", "/$1", "$1"];
        let start = ends.iter().find_map(|end| to.strip_suffix(end));
        let has_rest = start.is_some();
        let start = start
            .unwrap_or(&to)
            .replace("%{HTTP_HOST}", "\u{1}")
            .replace("%{SERVER_NAME}", "\u{1}");
        if start.contains(['$', '%']) {
            return None;
        }
        let whole = to.ends_with("%{REQUEST_URI}");
        let start = without_variables(&start).replace('\u{1}', "{host}");
        let all = paths == [PathPattern::everything()];
        let below = paths.iter().all(|path| matches!(path, PathPattern::Below(_)));
        let exact = paths.iter().all(|path| matches!(path, PathPattern::Exact(_)));
        match (has_rest, whole) {
            (true, true) => Some(format!("{start}{{path}}")),
            (true, false) if all && start.contains('{') => Some(format!("{start}{{path}}")),
            (true, false) if all => Some(format!("{}/", start.trim_end_matches('/'))),
            (true, false) if below => {
                let start = start.trim_end_matches('/');
                Some(if start.is_empty() { "/".to_owned() } else { start.to_owned() })
            }
            (false, _) if exact || all => Some(start),
            _ => None,
        }
    }
}

fn status_of(status: &str) -> Option<i64> {
    match status {
        "301" | "PERMANENT" => Some(301),
        "302" | "TEMP" => Some(302),
        "303" | "SEEOTHER" => Some(303),
        "307" => Some(307),
        "308" => Some(308),
        _ => None,
    }
}

/// Returns a rule that is left out. If it refuses clients, its paths are closed.
fn left_out(refuses: bool, paths: &ExpressionPaths, problem: &str) -> (Rule, Outcome) {
    if !refuses {
        return (Rule::None, Outcome::LeftOut(problem.to_owned()));
    }
    let text = format!("PROTECTION NOT CARRIED OVER: {problem}. Its paths are closed");
    let scope = Scope::of_paths(paths.closed());
    (Rule::Closed(scope, one_line(problem)), Outcome::LeftOut(text))
}

/// Returns which requests the conditions and the paths of a rule have.
fn scope(conditions: &[Directive], paths: &ExpressionPaths) -> Result<Scope, String> {
    let ExpressionPaths::Same(paths) = paths else {
        return Err("Kirin has no such expression for paths".to_owned());
    };
    let mut scope = Scope::of_paths(paths.clone());
    if scope.paths == [PathPattern::everything()] {
        scope.paths = Vec::new();
    }
    for condition in conditions {
        let (flags, wanted) = (condition.argument(2).to_ascii_uppercase(), condition.argument(1));
        if flags.contains("OR") {
            return Err("Kirin has no `[OR]`: write several routes".to_owned());
        }
        let problem = || format!("`{}`: Kirin has `match` (docs/routes.md)", condition.line);
        let other = match condition.argument(0) {
            "%{HTTPS}" => scheme(wanted).ok_or_else(problem)?,
            "%{SERVER_PORT}" => port(wanted).ok_or_else(problem)?,
            "%{REQUEST_SCHEME}" => fields("scheme", wanted.trim_start_matches(['=', '^'])),
            "%{HTTP:X-Forwarded-Proto}" if wanted == "!https" || wanted == "!^https$" => {
                fields("scheme", "http")
            }
            "%{HTTP_HOST}" | "%{SERVER_NAME}" => host(wanted).ok_or_else(problem)?,
            "%{HTTP_USER_AGENT}" => header("User-Agent", wanted, &flags).ok_or_else(problem)?,
            "%{HTTP_REFERER}" => header("Referer", wanted, &flags).ok_or_else(problem)?,
            "%{REQUEST_URI}" if wanted.contains("acme-challenge") => continue,
            _ => return Err(problem()),
        };
        match scope.both(&other)? {
            Some(both) => scope = both,
            None => return Err("its conditions never hold together".to_owned()),
        }
    }
    Ok(scope)
}

fn fields(key: &str, value: &str) -> Scope {
    let conditions = Table::from_iter([(key.to_owned(), Value::from(value.trim_end_matches('$')))]);
    Scope { conditions, ..Scope::default() }
}

fn scheme(wanted: &str) -> Option<Scope> {
    match wanted.trim_matches(['^', '$']).to_ascii_lowercase().as_str() {
        "off" | "!=on" | "!on" | "!^on" | "=off" => Some(fields("scheme", "http")),
        "on" | "=on" | "!=off" | "!off" => Some(fields("scheme", "https")),
        _ => None,
    }
}

fn port(wanted: &str) -> Option<Scope> {
    match wanted.trim_matches(['^', '$', '=']) {
        "80" | "!443" | "!^443" | "!=443" => Some(fields("scheme", "http")),
        "443" | "!80" | "!^80" | "!=80" => Some(fields("scheme", "https")),
        _ => None,
    }
}

/// Reads `^www\.example\.com$`.
fn host(wanted: &str) -> Option<Scope> {
    let name = match wanted.strip_prefix('=') {
        Some(name) => name.to_owned(),
        None => wanted.strip_prefix('^')?.strip_suffix('$')?.replace("\\.", "."),
    };
    let good = !name.contains('*') && is_host(&name);
    good.then(|| Scope { hosts: vec![name.to_ascii_lowercase()], ..Scope::default() })
}

fn header(name: &str, wanted: &str, flags: &str) -> Option<Scope> {
    if flags.contains("NC") {
        return None;
    }
    let (start, rest) = match wanted.strip_prefix('^') {
        Some(rest) => ("", rest),
        None => ("*", wanted),
    };
    let (end, text) = match rest.strip_suffix('$') {
        Some(text) => ("", text),
        None => ("*", rest),
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || " -_/:;".contains(c);
    if !text.chars().all(plain) {
        return None;
    }
    let value = format!("{start}{text}{end}").replace("**", "*");
    let fields = Table::from_iter([(name.to_owned(), Value::from(value))]);
    let conditions = Table::from_iter([("headers".to_owned(), Value::Table(fields))]);
    Some(Scope { conditions, ..Scope::default() })
}
