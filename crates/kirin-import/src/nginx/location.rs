//! A block `location`: which requests it is for.

use super::directive::Directive;
use super::paths::{Ending, Form, Paths, paths};
use super::scope::Scope;

/// A block `location`.
#[derive(Debug, Clone)]
pub struct Location<'a> {
    /// The block. For requests without a location it is the block `server`.
    pub directive: &'a Directive,
    /// What holds in it.
    pub scope: Scope<'a>,
    /// How it is compared.
    pub kind: Kind,
    /// The path, the expression, or the name with its `@`.
    pub pattern: &'a str,
    /// The path of the location around it, or nothing. `None` if that has no single path.
    pub above: Option<String>,
}

/// How a location is compared with a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// By the beginning of the path. It is true for `^~`: no expression comes before it.
    Prefix(bool),
    /// `=`.
    Exact,
    /// By a regular expression. It is true for `~*`.
    Expression(bool),
    /// `@name`: by no path.
    Named,
}

impl<'a> Location<'a> {
    /// Returns the location of requests that no block `location` of a server is for.
    pub fn of_server(server: &'a Directive, scope: &Scope<'a>) -> Self {
        Self {
            directive: server,
            scope: scope.clone(),
            kind: Kind::Prefix(false),
            pattern: "/",
            above: Some(String::new()),
        }
    }

    /// Reads a block inside `scope`.
    pub fn read(directive: &'a Directive, scope: &Scope<'a>, above: Option<String>) -> Self {
        let (first, second) = (directive.arg(0), directive.args.get(1).map(String::as_str));
        let attached = |sign| first.strip_prefix(sign).filter(|rest: &&str| !rest.is_empty());
        let (kind, pattern) = match (first, second) {
            ("=", Some(path)) => (Kind::Exact, path),
            ("^~", Some(path)) => (Kind::Prefix(true), path),
            ("~", Some(expression)) => (Kind::Expression(false), expression),
            ("~*", Some(expression)) => (Kind::Expression(true), expression),
            _ if first.starts_with('@') => (Kind::Named, first),
            _ => match (attached("="), attached("^~"), attached("~*"), attached("~")) {
                (Some(path), ..) => (Kind::Exact, path),
                (_, Some(path), ..) => (Kind::Prefix(true), path),
                (_, _, Some(expression), _) => (Kind::Expression(true), expression),
                (_, _, _, Some(expression)) => (Kind::Expression(false), expression),
                _ => (Kind::Prefix(false), first),
            },
        };
        let scope = scope.inner(directive.inside());
        Self { directive, scope, kind, pattern, above }
    }

    /// Returns the paths of Kirin. Returns `None` if there are none.
    pub fn paths(&self) -> Option<Paths> {
        let fixed = |form: Form| Some(Paths { forms: vec![form], ..Paths::default() });
        match self.kind {
            Kind::Prefix(_) => fixed(Form::below(self.pattern)),
            Kind::Exact => fixed(Form::exact(self.pattern)),
            Kind::Named => None,
            Kind::Expression(ignores_case) => {
                let mut found = paths(self.pattern, ignores_case)?;
                let is_anchored = self.pattern.trim_start_matches("(?i)").starts_with('^');
                if !is_anchored {
                    let above = self.above.as_deref()?;
                    found.forms = found.forms.iter().map(|form| form.moved_below(above)).collect();
                }
                Some(found)
            }
        }
    }

    /// Returns the path below which its requests are, if it is one without names.
    fn single_path(&self) -> Option<String> {
        let found = self.paths()?;
        match found.forms.as_slice() {
            [form] if form.ending == Ending::Below => {
                let is_text = form.segments.iter().all(|segment| !segment.starts_with('{'));
                is_text.then(|| form.segments.iter().map(|segment| format!("/{segment}")).collect())
            }
            _ => None,
        }
    }

    /// Returns whether it is compared by a regular expression.
    pub fn is_expression(&self) -> bool {
        matches!(self.kind, Kind::Expression(_))
    }

    /// Returns whether it is the expression for names that begin with a dot.
    pub fn is_for_hidden_names(&self) -> bool {
        let starts = ["/\\.", "\\/\\.", "(^|/)\\.", "(?:^|/)\\.", "^/\\.", "/[.]", "(/|^)\\."];
        let rest = starts.iter().find_map(|start| self.pattern.strip_prefix(start));
        let Some(rest) = rest.filter(|_| self.is_expression()) else { return false };
        // `/.well-known/` is the exception of Kirin, too.
        let known =
            ["(?!well-known\\/)", "(?!well-known/)", "(?!well-known)", "(?!(?:well-known))"];
        let rest = known.iter().find_map(|known| rest.strip_prefix(known)).unwrap_or(rest);
        // An alternative outside of a group would be for other names.
        let mut depth = 0_usize;
        let has_alternative = rest.chars().any(|c| {
            match c {
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                _ => {}
            }
            c == '|' && depth == 0
        });
        !has_alternative && !rest.starts_with("well-known") && !rest.contains('/')
    }

    /// Returns the directives of the block itself with this name.
    pub fn own(&self, name: &str) -> Option<&'a Directive> {
        self.scope.own_named(name).last().copied()
    }
}

/// Returns the locations of a block, and of the locations in it, in the order of the file.
pub fn locations<'a>(scope: &Scope<'a>) -> Vec<Location<'a>> {
    let mut all = Vec::new();
    add_locations(scope, &Some(String::new()), &mut all);
    all
}

/// Adds the locations of a block. Blocks are only a few levels deep ([`super::parser`]).
fn add_locations<'a>(scope: &Scope<'a>, above: &Option<String>, all: &mut Vec<Location<'a>>) {
    for directive in scope.own_named("location") {
        let location = Location::read(directive, scope, above.clone());
        let inner = location.scope.clone();
        let path =
            if inner.own_named("location").is_empty() { None } else { location.single_path() };
        all.push(location);
        add_locations(&inner, &path, all);
    }
}
