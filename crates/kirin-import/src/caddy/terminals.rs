//! Directives that answer requests.

use crate::caddy::matchers::Matcher;
use crate::caddy::placeholders::{has_placeholder, template};
use crate::caddy::proxy::{php_fastcgi, reverse_proxy};
use crate::caddy::tree::Directive;
use crate::draft::Draft;
use crate::report::Outcome;
use crate::section::Section;
use crate::steps::{PathPattern, Scope};

/// The answer of a directive.
#[derive(Debug)]
pub(crate) struct Answer {
    /// The keys of the route.
    pub(crate) route: Section,
    /// Why the route must be closed.
    pub(crate) closed: Option<String>,
    pub(crate) outcome: Outcome,
}

/// Directives that answer requests, in the order of Caddy.
const ORDER: [&str; 11] = [
    "redir",
    "handle",
    "handle_path",
    "route",
    "abort",
    "error",
    "respond",
    "reverse_proxy",
    "php_fastcgi",
    "file_server",
    "static_response",
];

/// Returns whether a directive answers requests.
pub(crate) fn is_terminal(name: &str) -> bool {
    ORDER.contains(&name)
}

/// Returns the place of a directive in the order of Caddy. Of one kind, longer paths come first,
/// and directives without a matcher last.
pub(crate) fn rank(
    directive: &Directive,
    matcher: &Matcher,
) -> (usize, bool, std::cmp::Reverse<usize>) {
    let name = if directive.name() == "handle_path" { "handle" } else { directive.name() };
    let kind = ORDER.iter().position(|other| *other == name).unwrap_or(ORDER.len());
    let all = *matcher == Matcher::default();
    let path = match matcher.scope.paths.as_slice() {
        [path] => path.start().len() + usize::from(matches!(path, PathPattern::Exact(_))),
        _ => 0,
    };
    (kind, all, std::cmp::Reverse(path))
}

/// Returns whether a directive, or one in its block, keeps clients out.
pub(crate) fn refuses(directive: &Directive) -> bool {
    let status =
        || directive.arguments().iter().any(|word| word.starts_with('4') && word.len() == 3);
    match directive.name() {
        "abort" | "basic_auth" | "basicauth" | "forward_auth" => true,
        "error" => true,
        "respond" => status(),
        _ => directive.inner().iter().any(refuses),
    }
}

/// Returns the answer of a directive. `taken` is the number of arguments of its matcher, and
/// `files` says whether files of the directory come first.
pub(crate) fn answer(
    directive: &Directive,
    taken: usize,
    root: Option<&str>,
    files: bool,
    scope: &Scope,
    draft: &mut Draft,
) -> Answer {
    let arguments = directive.arguments().get(taken..).unwrap_or_default();
    let place = format!("files:{}", directory(root));
    match directive.name() {
        "redir" => redir(arguments, scope),
        "respond" => respond(arguments, directive),
        "error" => refusal(status(arguments).unwrap_or(500)),
        "abort" => closed("Kirin has no `abort`", "a route refuses with 403 (docs/routes.md)"),
        "file_server" => file_server(directive, arguments, root),
        "php_fastcgi" => {
            let (php, outcome) = php_fastcgi(directive, arguments, root, draft);
            let mut route = Section::default();
            let closed = php.is_none().then(|| "`php_fastcgi` has no address".to_owned());
            let places: Vec<_> = files.then_some(place).into_iter().chain(php).collect();
            route.set("try", places);
            Answer { route, closed, outcome }
        }
        "reverse_proxy" => {
            let (mut route, closed, outcome) = reverse_proxy(directive, arguments, draft);
            if let Some(toml::Value::Array(places)) = route.get("try").filter(|_| files) {
                let mut places = places.clone();
                places.insert(0, place.into());
                route.set("try", places);
            }
            Answer { route, closed, outcome }
        }
        _ => closed("the directive is not known here", "not known here"),
    }
}

fn directory(root: Option<&str>) -> &str {
    root.filter(|root| !root.is_empty()).unwrap_or(".")
}

fn closed(reason: &str, text: &str) -> Answer {
    Answer {
        route: Section::default(),
        closed: Some(reason.to_owned()),
        outcome: Outcome::LeftOut(format!("{text}. The route is closed")),
    }
}

/// Reads `redir TO [STATUS]`.
fn redir(arguments: &[String], scope: &Scope) -> Answer {
    let to = arguments.first().map_or("", String::as_str);
    let status = match arguments.get(1).map(String::as_str) {
        None | Some("temporary") => 302,
        Some("permanent") => 301,
        Some(status) => status.parse().unwrap_or(0),
    };
    if !matches!(status, 301 | 302 | 303 | 307 | 308) {
        return closed("a redirect of Kirin has 301, 302, 303, 307 or 308", "another status");
    }
    let ends = ["{uri}", "{http.request.uri}", "{path}", "{http.request.uri.path}"];
    let start = ends.iter().find_map(|end| to.strip_suffix(end));
    let to = to.replace("https://{hostport}", "https://{host}");
    let Ok(mut target) = template(&to) else {
        return closed("the target of the redirect has a placeholder", "Kirin lacks it");
    };
    let all = scope.paths.is_empty() || scope.paths == [PathPattern::everything()];
    let mut text = "";
    match start {
        Some(start) if all && !has_placeholder(start) && start.contains("://") => {
            target = format!("{}/", start.trim_end_matches('/'));
        }
        Some(_) => {}
        None if scope.paths.iter().all(|path| matches!(path, PathPattern::Exact(_))) && !all => {
            text = "Kirin keeps the query.";
        }
        None => text = "Kirin appends the rest of the path, and the query.",
    }
    let mut route = Section::default();
    route.set("redirect", target);
    route.set("redirect_status", status);
    Answer { route, closed: None, outcome: Outcome::Carried(text.to_owned()) }
}

fn status(arguments: &[String]) -> Option<u16> {
    let mut numbers = arguments.iter().filter(|word| word.len() == 3);
    numbers.find_map(|word| word.parse().ok())
}

/// Reads `respond`.
fn respond(arguments: &[String], directive: &Directive) -> Answer {
    let in_block = directive.inner().iter().any(|inner| inner.name() == "body");
    let text = arguments.iter().any(|word| word.parse::<u16>().is_err()) || in_block;
    match status(arguments) {
        Some(status @ 400..) => refusal(status),
        _ if text || directive.block.is_some() => {
            closed("Caddy answered with a text", "write `try = [\"lua:answer.lua\"]` (docs/lua.md)")
        }
        _ => closed("Caddy answered without a body", "write `try = [\"lua:answer.lua\"]`"),
    }
}

fn refusal(status: u16) -> Answer {
    let mut route = Section::default();
    route.set("deny", if status == 404 { 404 } else { 403 });
    let text = "Kirin refuses with 403 or 404, and its own text or that of `error_pages`.";
    Answer { route, closed: None, outcome: Outcome::Carried(text.to_owned()) }
}

/// Reads `file_server`.
fn file_server(directive: &Directive, arguments: &[String], root: Option<&str>) -> Answer {
    let mut route = Section::default();
    let mut directory = directory(root).to_owned();
    let mut lacking = Vec::new();
    let mut closed = None;
    let browse = arguments.iter().any(|word| word == "browse");
    for inner in directive.inner() {
        match inner.name() {
            "root" => inner.argument(0).unwrap_or(".").clone_into(&mut directory),
            "index" => {
                let names: Vec<_> = inner.arguments().to_vec();
                route.set("index", names);
            }
            "browse" => route.set("listing", true),
            "precompressed" | "pass_thru" | "disable_canonical_uris" | "etag_file_extensions" => {}
            "hide" if inner.arguments().iter().all(|name| name.starts_with('.')) => {}
            "hide" => {
                closed = Some(format!("`{}` hides files", inner.line()));
            }
            _ => lacking.push(format!("`{}`", inner.line())),
        }
    }
    if browse {
        route.set("listing", true);
    }
    route.set("try", vec![format!("files:{directory}")]);
    let outcome = match &closed {
        Some(reason) => Outcome::LeftOut(format!(
            "PROTECTION NOT CARRIED OVER: {reason}. Names that begin with a dot are hidden by \
             themselves. Write routes with `deny = 404` for the others. The route is closed"
        )),
        None if !lacking.is_empty() => {
            Outcome::LeftOut(format!("carried without {}", lacking.join(", ")))
        }
        None => Outcome::Carried("Names that begin with a dot are hidden.".to_owned()),
    };
    Answer { route, closed, outcome }
}
