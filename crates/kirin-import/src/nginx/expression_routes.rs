//! Locations with regular expressions: which routes stand for them.

use super::context::Context;
use super::copies::with_copies;
use super::directive::Directive;
use super::location::{Kind, Location};
use super::paths::{Ending, Form, Paths};
use super::protection::{protects, refuses_all};
use super::site_routes::has_front_controller;

/// Names that begin with a dot and that attackers ask for. A server behind Kirin gets requests for
/// such names, but `files:` does not have them.
const HIDDEN: [&str; 6] = ["/.git", "/.env", "/.htaccess", "/.htpasswd", "/.svn", "/.hg"];

/// A route that will be built.
#[derive(Debug, Clone)]
pub struct Planned<'a> {
    /// The location.
    pub location: Location<'a>,
    /// Its path.
    pub form: Form,
    /// Why the route must refuse everybody, and the directive that it is about.
    pub closed: Option<(&'a Directive, String)>,
}

impl<'a> Planned<'a> {
    /// Returns the route of a location that is compared with a path.
    pub fn fixed(location: Location<'a>) -> Option<Self> {
        let form = location.paths()?.forms.into_iter().next()?;
        form.path()?;
        Some(Self { location, form, closed: None })
    }

    /// Returns the place in the order in which nginx asks locations, then the place in the file. Of
    /// two prefixes that are the same for Kirin, the one with a slash comes first.
    pub fn rank(&self) -> (u8, bool, usize) {
        let number = self.location.directive.number;
        match self.location.kind {
            Kind::Exact => (0, false, number),
            Kind::Prefix(true) => (1, false, number),
            Kind::Expression(_) => (2, false, number),
            Kind::Prefix(false) | Kind::Named => (3, !self.location.pattern.ends_with('/'), number),
        }
    }
}

/// Returns the routes for a location with an expression.
pub fn plan_expression<'a>(location: &Location<'a>, context: &Context<'a>) -> Vec<Planned<'a>> {
    if location.is_for_hidden_names() {
        return plan_hidden(location, context);
    }
    if is_php(location, context) {
        return plan_php(location, context);
    }
    let is_guard = protects(&location.scope);
    match location.paths() {
        Some(found) if is_guard => plan_guard(location, &found, context),
        Some(found) => plan_open(location, &found, context),
        None if is_guard => plan_closed(location, context),
        None => {
            let text = "the path of a route cannot say the same as this expression: its requests go \
                        to the routes of shorter paths";
            context.left_out(location.directive, text);
            Vec::new()
        }
    }
}

fn is_php(location: &Location<'_>, context: &Context<'_>) -> bool {
    let php = context.php.as_ref();
    let is_all_scripts = || {
        let root = Form { ending: Ending::Suffix(".php".into()), ..Form::default() };
        location
            .paths()
            .is_none_or(|found| found.forms.iter().any(|form| form.path() == root.path()))
    };
    php.is_some_and(|php| php.directive.number == location.directive.number) && is_all_scripts()
}

/// Plans the location that runs scripts. The routes with the front controller run them, too.
fn plan_php<'a>(location: &Location<'a>, context: &Context<'a>) -> Vec<Planned<'a>> {
    let has = |name: &str| !location.scope.own_named(name).is_empty();
    let is_special = protects(&location.scope) || has("limit_req") || has("limit_conn");
    if has_front_controller(context) && !is_special {
        let text = "the routes that name the upstream run scripts";
        context.carried_but(location.directive, text);
        for checks in location.scope.own_named("try_files").iter().copied() {
            context.by_itself(checks, "Kirin looks for the script");
        }
        return Vec::new();
    }
    let form = Form { ending: Ending::Suffix(".php".into()), ..Form::default() };
    context.carried_but(location.directive, "a path that names no script runs index.php");
    vec![Planned { location: location.clone(), form, closed: None }]
}

/// Plans the location for names that begin with a dot.
fn plan_hidden<'a>(location: &Location<'a>, context: &Context<'a>) -> Vec<Planned<'a>> {
    if !refuses_all(location) {
        let text = "names that begin with a dot are missing, except /.well-known/";
        context.left_out(location.directive, text);
        return Vec::new();
    }
    for directive in location.scope.own() {
        context.by_itself(directive, "files have no names that begin with a dot");
    }
    // A script of FastCGI answers for such a path, and the file itself stays hidden.
    let is_server = |other: &Location<'_>| {
        super::programs::pass(other).is_some_and(|(_, protocol)| !protocol.is_cgi())
    };
    let has_programs =
        context.by_path.values().any(is_server) || context.named.values().any(is_server);
    if !has_programs {
        context.by_itself(location.directive, "files have no names that begin with a dot");
        return Vec::new();
    }
    context.globals.notes.protection_lost(
        location.directive,
        "files have no names that begin with a dot, but servers behind Kirin get requests for them. \
         There are routes with `deny` for the most frequent names only",
    );
    let plan = |path: &&str| {
        let mut location = location.clone();
        location.kind = Kind::Prefix(true);
        Planned { location, form: Form::below(path), closed: None }
    };
    // `/\.ht` is for the files of Apache alone.
    let is_of_apache = location.pattern.contains("\\.ht");
    let fits = |path: &&&str| !is_of_apache || path.starts_with("/.ht");
    HIDDEN.iter().filter(fits).map(plan).collect()
}

/// Plans a location that keeps visitors out. nginx asks it before all prefixes, so its routes are
/// written below them, too.
fn plan_guard<'a>(
    location: &Location<'a>,
    found: &Paths,
    context: &Context<'a>,
) -> Vec<Planned<'a>> {
    let number = location.directive.number;
    let Some(forms) = with_copies(&found.forms, number, context) else {
        return plan_closed(location, context);
    };
    if !found.missing.is_empty() {
        let text = format!("not for {}", found.missing.join(", and not for "));
        context.globals.notes.protection_lost(location.directive, text);
    } else if found.is_broader {
        context.carried_but(location.directive, "more paths are guarded than in nginx");
    }
    forms
        .into_iter()
        .map(|form| Planned { location: location.clone(), form, closed: None })
        .collect()
}

/// Plans a location that keeps nobody out.
fn plan_open<'a>(
    location: &Location<'a>,
    found: &Paths,
    context: &Context<'a>,
) -> Vec<Planned<'a>> {
    // A redirect shows nothing, so it may be for more paths.
    let is_redirect = location.own("return").is_some_and(|answer| answer.arg(0).starts_with('3'));
    if found.is_broader && context.protects_some && !is_redirect {
        let text = "a route would match more paths than the expression, and other locations of the \
                    server keep visitors out: write it by hand";
        context.left_out(location.directive, text);
        return Vec::new();
    }
    // A directory of any depth is written at the root only. Its guard is written deeper, too.
    let is_anchored = location.pattern.trim_start_matches("(?i)").starts_with('^');
    let is_at_root = |form: &&Form| {
        is_anchored
            || !form.segments.iter().any(|segment| matches!(segment.as_str(), "{s1}" | "{s2}"))
    };
    let prefixes = context.open_paths.iter().filter(|open| open.number.is_none());
    let is_shadow = |prefix: &&Form| {
        let is_below = |form: &Form| {
            prefix.segments.len() > form.segments.len()
                && prefix.segments.starts_with(&form.segments)
        };
        found.forms.iter().any(is_below)
    };
    let shadows: Vec<_> =
        prefixes.map(|open| &open.form).filter(is_shadow).filter_map(Form::path).take(4).collect();
    if !shadows.is_empty() {
        let text = format!("but not below {}, whose routes come first", shadows.join(", "));
        context.carried_but(location.directive, text);
    }
    if found.forms.iter().any(|form| !is_at_root(&form)) {
        context
            .carried_but(location.directive, "but only at the root, and not in other directories");
    } else if let Some(missing) = found.missing.first() {
        context.carried_but(location.directive, format!("but not for {missing}"));
    } else if found.is_broader {
        context.carried_but(location.directive, "a name in braces stands for any segment");
    }
    // Other spellings are written for locations that keep visitors out only.
    let is_spelled_so = |form: &&Form| match &form.ending {
        Ending::Suffix(suffix) => {
            location.pattern.contains(suffix.trim_start_matches('.')) || found.missing.is_empty()
        }
        _ => true,
    };
    let forms = found.forms.iter().filter(is_spelled_so).filter(is_at_root).cloned();
    forms.map(|form| Planned { location: location.clone(), form, closed: None }).collect()
}

/// Plans the refusal of everything that a location could keep visitors out of.
fn plan_closed<'a>(location: &Location<'a>, context: &Context<'a>) -> Vec<Planned<'a>> {
    let why =
        "the path of a route cannot say the same as this expression, which keeps visitors out";
    let closed = Some((location.directive, why.to_owned()));
    context.globals.notes.protection_lost(location.directive, why);
    for inner in location.scope.own() {
        context.left_out(inner, "see the location");
    }
    let below = Form::below(&literal_start(location.pattern));
    let suffix = literal_end(location.pattern);
    if below.segments.is_empty() && suffix.is_none() {
        *context.closed_site.borrow_mut() = closed;
        return Vec::new();
    }
    let first = match suffix {
        Some(suffix) => Form { ending: Ending::Suffix(suffix), ..below.clone() },
        None => below.clone(),
    };
    let Some(forms) = with_copies(&[first], location.directive.number, context) else {
        *context.closed_site.borrow_mut() = closed;
        return Vec::new();
    };
    let plan = |form: Form| {
        let mut location = location.clone();
        location.kind = Kind::Prefix(true);
        Planned { location, form, closed: closed.clone() }
    };
    forms.into_iter().map(plan).collect()
}

/// Returns the complete segments at the start of an expression.
fn literal_start(expression: &str) -> String {
    let Some(rest) = expression.strip_prefix("^/") else { return "/".into() };
    let is_literal = |c: char| c.is_ascii_alphanumeric() || "-_/".contains(c);
    let length = rest.find(|c| !is_literal(c)).unwrap_or(rest.len());
    let start = rest.get(..length).unwrap_or_default();
    let segments = start.rsplit_once('/').map_or("", |(segments, _)| segments);
    // An alternative could be for another path.
    if expression.contains('|') && !expression.contains('(') {
        "/".into()
    } else {
        format!("/{segments}")
    }
}

/// Returns the extension at the end of an expression.
fn literal_end(expression: &str) -> Option<String> {
    let start = expression.strip_suffix('$')?;
    let (before, extension) = start.rsplit_once("\\.")?;
    let is_plain = !extension.is_empty() && extension.chars().all(|c| c.is_ascii_alphanumeric());
    let has_alternative =
        before.contains('|') && before.matches('(').count() != before.matches(')').count();
    (is_plain && !has_alternative && !expression.contains("|^")).then(|| format!(".{extension}"))
}

/// Plans the refusal of the directory of a guard whose own path Kirin cannot have.
pub fn plan_impossible_path<'a>(
    location: &Location<'a>,
    context: &Context<'a>,
) -> Option<Planned<'a>> {
    let why = "a route cannot have this path, which keeps visitors out";
    let closed = Some((location.directive, why.to_owned()));
    let is_possible = |segment: &&str| !segment.contains(['*', '%', '?', '#', '{', '}']);
    let segments = location.pattern.split('/').filter(|segment| !segment.is_empty());
    let possible: Vec<_> = segments.take_while(is_possible).collect();
    context.globals.notes.protection_lost(location.directive, why);
    if possible.is_empty() {
        *context.closed_site.borrow_mut() = closed;
        return None;
    }
    let mut location = location.clone();
    location.kind = Kind::Prefix(true);
    Some(Planned { location, form: Form::below(&format!("/{}", possible.join("/"))), closed })
}
