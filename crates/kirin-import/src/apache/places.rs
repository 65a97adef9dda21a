//! Directories with their paths, and redirects.

use crate::apache::tree::Directive;
use crate::report::Outcome;
use crate::section::Section;
use crate::steps::{ExpressionPaths, PathPattern, Scope};
use crate::text::without_variables;

/// A directory of files and the path at which it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mount {
    pub(crate) path: PathPattern,
    /// Without a slash at its end.
    pub(crate) directory: String,
}

impl Mount {
    /// Returns what stands for the document root before that is known.
    pub(crate) fn root() -> Self {
        Self { path: PathPattern::everything(), directory: "\u{1}".to_owned() }
    }

    /// Returns whether it stands for the document root.
    pub(crate) fn is_root(&self) -> bool {
        self.directory == "\u{1}"
    }

    /// Reads `Alias PATH DIRECTORY`, or `Alias DIRECTORY` in a location.
    pub(crate) fn alias(directive: &Directive, location: Option<&PathPattern>) -> Option<Self> {
        let (path, target) = match (location, directive.arguments.len()) {
            (Some(path), 1) => (path.clone(), directive.argument(0)),
            _ => {
                let (from, to) = (directive.argument(0), directive.argument(1));
                let name = to.rsplit('/').next().unwrap_or_default();
                let is_file = directive.name == "alias"
                    && !from.ends_with('/')
                    && from.contains('.')
                    && name.contains('.');
                (if is_file { PathPattern::exact(from) } else { PathPattern::below(from) }?, to)
            }
        };
        let directory = target.trim_end_matches('/');
        (!directory.is_empty()).then(|| Self { path, directory: directory.to_owned() })
    }

    /// Writes the place into a route.
    pub(crate) fn write(&self, route: &mut Section, programs: bool) {
        let start = self.path.start();
        if programs {
            route.set("try", vec![format!("cgi:{}", self.directory)]);
        } else if matches!(self.path, PathPattern::Exact(_)) {
            let (directory, name) =
                self.directory.rsplit_once('/').unwrap_or((".", &self.directory));
            route.set("try", vec![format!("files:{directory}")]);
            route.set("rewrite", format!("/{name}"));
        } else {
            match self.directory.strip_suffix(start).filter(|root| !root.is_empty()) {
                Some(root) => route.set("try", vec![format!("files:{root}")]),
                None => {
                    route.set("try", vec![format!("files:{}", self.directory)]);
                    route.set("rewrite", "/");
                }
            }
        }
    }

    /// Returns the paths of a directory: all of the mount, a part of it, or none.
    pub(crate) fn path_of(&self, directory: &str) -> Option<PathPattern> {
        if is_at_or_below(&self.directory, directory) {
            return Some(self.path.clone());
        }
        if matches!(self.path, PathPattern::Exact(_)) || !is_at_or_below(directory, &self.directory)
        {
            return None;
        }
        let rest = directory.strip_prefix(&self.directory)?;
        PathPattern::below(&format!("{}{rest}", self.path.start()))
    }
}

/// Returns whether a path is another one or below it. An empty one is the root.
pub(crate) fn is_at_or_below(path: &str, other: &str) -> bool {
    path.strip_prefix(other).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// A redirect or refusal: its requests, its keys, and why it is closed.
type Redirect = (Scope, Section, Option<String>);

/// Reads `Redirect [STATUS] FROM TO` and `RedirectMatch [STATUS] EXPRESSION TO`.
pub(crate) fn redirect(
    directive: &Directive,
    location: Option<&PathPattern>,
) -> (Option<Redirect>, Outcome) {
    let (status, mut words) = status_and_words(directive);
    if location.is_some() && words.len() <= 1 {
        words.insert(0, "");
    }
    let from = words.first().copied().unwrap_or_default();
    let paths = match (location, directive.name.as_str()) {
        (Some(path), _) => ExpressionPaths::Same(vec![path.clone()]),
        (None, "redirectmatch") => ExpressionPaths::read(from),
        _ => PathPattern::below(from)
            .map_or(ExpressionPaths::Unknown, |path| ExpressionPaths::Same(vec![path])),
    };
    let mut route = Section::default();
    if status >= 400 {
        route.set("deny", if matches!(status, 404 | 410) { 404 } else { 403 });
        let scope = Scope::of_paths(paths.closed());
        let same = matches!(paths, ExpressionPaths::Same(_));
        let outcome = if same {
            Outcome::Carried("With 403 or 404.".to_owned())
        } else {
            Outcome::LeftOut(
                "PROTECTION NOT CARRIED OVER for single paths: Kirin has no such \
                              expression. Their directory is closed"
                    .to_owned(),
            )
        };
        return (Some((scope, route, None)), outcome);
    }
    let to = words.get(1).copied().unwrap_or_default();
    let left_out = |text: &str| (None, Outcome::LeftOut(text.to_owned()));
    let ExpressionPaths::Same(paths) = paths else {
        return left_out("Kirin has no such expression for paths (docs/routes.md)");
    };
    let all = paths == [PathPattern::everything()];
    let to = match to.strip_suffix("/$1").or(to.strip_suffix("$1")) {
        Some(start) if directive.name == "redirectmatch" => start,
        _ => to,
    };
    if to.contains('$') || to.is_empty() || !matches!(status, 301 | 302 | 303 | 307 | 308) {
        return left_out("Kirin has no groups of expressions, and five statuses of redirects");
    }
    let mut target = without_variables(to);
    if all && target.contains("://") && !target.ends_with('/') {
        target.push('/');
    }
    route.set("redirect", target);
    route.set("redirect_status", status);
    let exact = paths.iter().all(|path| matches!(path, PathPattern::Exact(_)));
    let text = if directive.name == "redirectmatch" && !exact {
        "Kirin appends the rest of the path, and the query."
    } else {
        ""
    };
    let scope = if all { Scope::default() } else { Scope::of_paths(paths) };
    (Some((scope, route, None)), Outcome::Carried(text.to_owned()))
}

/// Returns the status of a redirect, and the words behind it.
fn status_and_words(directive: &Directive) -> (i64, Vec<&str>) {
    let mut words = directive.arguments.iter().map(String::as_str).collect::<Vec<_>>();
    let mut status = if directive.name == "redirectpermanent" { 301 } else { 302 };
    if let Some(first) = words.first() {
        let named = match first.to_ascii_lowercase().as_str() {
            "permanent" => Some(301),
            "temp" => Some(302),
            "seeother" => Some(303),
            "gone" => Some(410),
            number => number.parse().ok(),
        };
        if let Some(named) = named {
            status = named;
            words.remove(0);
        }
    }
    (status, words)
}
