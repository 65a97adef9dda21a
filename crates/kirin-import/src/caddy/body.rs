//! The directives of a site, of `handle` and of `route`, as steps.
//!
//! Caddy sorts directives by their kind. Those that answer requests become steps, and those that
//! add something (`effects`) belong to the steps whose requests they have.

use crate::caddy::matchers::{Matcher, Named};
use crate::caddy::middleware::middleware;
use crate::caddy::terminals::{Answer, answer, is_terminal, rank, refuses};
use crate::caddy::tree::Directive;
use crate::draft::Draft;
use crate::error::ImportError;
use crate::report::Outcome;
use crate::steps::effects::{Effect, Scoped, root, steps_of};
use crate::steps::{HostStep, PathPattern, Scope, Step};

/// The most steps of a file.
const MOST_STEPS: usize = 10_000;

/// What holds around a body.
#[derive(Debug, Clone, Default)]
pub(crate) struct Around {
    pub(crate) scope: Scope,
    pub(crate) named: Named,
    pub(crate) effects: Vec<Scoped>,
    /// What `handle_path` has removed from paths.
    pub(crate) prefix: String,
    /// Whether files that exist come before the other places.
    pub(crate) files_first: bool,
    /// Whether directives keep their order, so that a redirect may be behind a password.
    pub(crate) in_route: bool,
}

/// Makes steps of bodies.
pub(crate) struct BodyReader<'a> {
    pub(crate) draft: &'a mut Draft,
    pub(crate) steps: Vec<HostStep>,
}

impl BodyReader<'_> {
    /// Reads a body.
    ///
    /// # Errors
    /// Returns an error if there are too many steps.
    pub(crate) fn body(&mut self, body: &[Directive], around: &Around) -> Result<(), ImportError> {
        let mut around = around.clone();
        for directive in body.iter().filter(|directive| directive.name().starts_with('@')) {
            let matcher = Matcher::named(directive, &around.prefix);
            self.note_matcher(directive, &matcher);
            around.named.insert(directive.name().to_owned(), matcher);
        }
        let mut terminals = Vec::new();
        for directive in body {
            if is_terminal(directive.name()) {
                let (matcher, taken) = Matcher::of(directive, &around.named, &around.prefix);
                terminals.push((directive, matcher, taken));
            } else if !directive.name().starts_with('@') {
                self.effect(directive, &mut around);
            }
        }
        if !around.in_route {
            terminals.sort_by_key(|(directive, matcher, _)| rank(directive, matcher));
        }
        let has_files = terminals.iter().any(|(directive, _, _)| directive.name() == "file_server");
        for (directive, matcher, taken) in &terminals {
            self.terminal(directive, matcher, *taken, &mut around, has_files)?;
        }
        Ok(())
    }

    fn note_matcher(&mut self, directive: &Directive, matcher: &Matcher) {
        let line = directive.line();
        let notes = &mut self.draft.notes;
        match (&matcher.problem, &matcher.remark) {
            (Some(_), _) if matcher.for_files => {
                notes.carried(&directive.place, &line, "Files come first in `try`.");
            }
            (Some(problem), _) => notes.left_out(&directive.place, &line, problem),
            (None, Some(remark)) => notes.left_out(&directive.place, &line, remark),
            (None, None) => notes.carried(&directive.place, &line, ""),
        }
    }

    /// Reads a directive that adds something.
    fn effect(&mut self, directive: &Directive, around: &mut Around) {
        let line = directive.line();
        let (matcher, taken) = Matcher::of(directive, &around.named, &around.prefix);
        // `try_files` has paths, and `rewrite` with one argument has no matcher.
        let no_matcher = directive.name() == "try_files"
            || (matches!(directive.name(), "rewrite" | "root") && directive.arguments().len() == 1);
        let (matcher, taken) = if no_matcher { (Matcher::default(), 0) } else { (matcher, taken) };
        if matches!(directive.name(), "handle_errors" | "log" | "tls" | "bind") {
            // They are read for the complete site.
            return;
        }
        let Some((effects, outcome)) = middleware(directive, taken, self.draft) else {
            let (by_itself, text) = other(directive.name());
            let outcome = if by_itself {
                Outcome::ByItself(text.to_owned())
            } else {
                Outcome::LeftOut(text.to_owned())
            };
            self.draft.notes.add(&directive.place, &line, outcome);
            return;
        };
        let Some(problem) = matcher.problem.clone() else {
            self.note(directive, &matcher, outcome);
            for effect in effects {
                let mut matcher = matcher.clone();
                if let Effect::StripPrefix(prefix) = &effect {
                    let below = Matcher::path(&[&format!("{prefix}/*")], &around.prefix);
                    matcher.scope =
                        matcher.scope.both(&below.scope).ok().flatten().unwrap_or(below.scope);
                }
                around.effects.push(Scoped { scope: matcher.scope, effect });
            }
            return;
        };
        let protects = |effect: &Effect| matches!(effect, Effect::Login(_) | Effect::Closed(_));
        if effects.iter().any(protects) {
            let text = format!("PROTECTION NOT CARRIED OVER: {problem}. The route is closed");
            self.draft.notes.left_out(&directive.place, &line, &text);
            let effect = Effect::Closed(problem);
            around.effects.push(Scoped { scope: matcher.scope, effect });
        } else {
            self.draft.notes.left_out(&directive.place, &line, &problem);
        }
    }

    fn note(&mut self, directive: &Directive, matcher: &Matcher, outcome: Outcome) {
        let outcome = match (&matcher.remark, outcome) {
            (Some(remark), Outcome::Carried(text)) => {
                Outcome::LeftOut(format!("carried, but {remark}. {text}").trim_end().to_owned())
            }
            (_, outcome) => outcome,
        };
        self.draft.notes.add(&directive.place, &directive.line(), outcome);
    }

    /// Reads a directive that answers requests.
    fn terminal(
        &mut self,
        directive: &Directive,
        matcher: &Matcher,
        taken: usize,
        around: &mut Around,
        has_files: bool,
    ) -> Result<(), ImportError> {
        let only_files = matches!(directive.inner(), [only] if only.name() == "file_server");
        if matcher.for_files && (directive.name() == "file_server" || only_files) {
            around.files_first = true;
            self.draft.notes.carried(&directive.place, &directive.line(), "First in `try`.");
            return Ok(());
        }
        if let Some(problem) = &matcher.problem {
            return self.not_carried(directive, matcher, problem, around);
        }
        let scope = match around.scope.both(&matcher.scope) {
            Ok(Some(scope)) => scope,
            Ok(None) => {
                let text = "no request of the block around it matches";
                self.draft.notes.left_out(&directive.place, &directive.line(), text);
                return Ok(());
            }
            Err(problem) => return self.not_carried(directive, matcher, &problem, around),
        };
        match directive.name() {
            "handle" | "handle_path" | "route" => self.inner(directive, matcher, scope, around),
            _ => {
                let effects = around.effects.iter().map(|scoped| &scoped.effect);
                let directory = root(effects);
                let files = (has_files && directive.name() == "php_fastcgi") || around.files_first;
                let answer =
                    answer(directive, taken, directory.as_deref(), files, &scope, self.draft);
                self.note(directive, matcher, answer.outcome.clone());
                self.answer(directive, &answer, scope, around)
            }
        }
    }

    /// Reads the block of `handle`, `handle_path` or `route`.
    fn inner(
        &mut self,
        directive: &Directive,
        matcher: &Matcher,
        scope: Scope,
        around: &Around,
    ) -> Result<(), ImportError> {
        self.note(directive, matcher, Outcome::Carried(String::new()));
        let mut inside = Around { scope, ..around.clone() };
        inside.in_route = directive.name() == "route";
        if directive.name() == "handle_path"
            && let Some(path) = directive.argument(0)
        {
            let path = path.trim_end_matches('*').trim_end_matches('/');
            inside.prefix = format!("{}{path}", around.prefix);
        }
        let before = self.steps.len();
        self.body(directive.inner(), &inside)?;
        if self.steps.len() == before && directive.name() != "route" {
            let text = "nothing in the block answers requests";
            self.draft.notes.left_out(&directive.place, &directive.line(), text);
        }
        Ok(())
    }

    /// Leaves out a directive whose matcher Kirin does not have. Where it may protect something, a
    /// closed route stands in its place.
    fn not_carried(
        &mut self,
        directive: &Directive,
        matcher: &Matcher,
        problem: &str,
        around: &Around,
    ) -> Result<(), ImportError> {
        let everything = PathPattern::everything();
        let narrow = !matcher.scope.paths.is_empty() && !matcher.scope.paths.contains(&everything);
        let protects = refuses(directive);
        let end = match (protects, narrow) {
            (true, _) => ". PROTECTION NOT CARRIED OVER, so the route is closed",
            (false, true) => ". The route is closed, because it may protect something",
            (false, false) => ". It has no route, so that others answer its requests",
        };
        self.draft.notes.left_out(&directive.place, &directive.line(), &format!("{problem}{end}"));
        if !protects && !narrow {
            return Ok(());
        }
        let wide = Scope::of_paths(matcher.scope.paths.clone());
        let scope = around.scope.both(&wide).ok().flatten().unwrap_or_else(|| around.scope.clone());
        let mut step = Step::new(scope.patterns(), directive.place.to_string());
        step.close(&format!("Closed: {}.", crate::draft::one_line(problem)));
        self.add(step, &scope, directive)
    }

    /// Adds the steps of an answer: one for each set of effects that its requests can have.
    fn answer(
        &mut self,
        directive: &Directive,
        answer: &Answer,
        scope: Scope,
        around: &Around,
    ) -> Result<(), ImportError> {
        let mut route = answer.route.clone();
        route.comments.insert(0, directive.place.to_string());
        let closed = answer.closed.as_deref();
        let (effects, prefix) = (&around.effects, around.prefix.as_str());
        let found = steps_of(&route, closed, &scope, effects, prefix, around.in_route);
        let Some(steps) = found else {
            let mut step = Step::new(scope.patterns(), directive.place.to_string());
            step.close("Closed: the conditions of what is added cannot be combined.");
            let text = "the conditions of other directives cannot be combined with it. The route \
                        is closed";
            self.draft.notes.left_out(&directive.place, &directive.line(), text);
            return self.add(step, &scope, directive);
        };
        for (scope, step) in steps {
            self.add(step, &scope, directive)?;
        }
        Ok(())
    }

    fn add(&mut self, mut step: Step, to: &Scope, at: &Directive) -> Result<(), ImportError> {
        step.conditions.clone_from(&to.conditions);
        self.steps.push(HostStep { hosts: to.hosts.clone(), step });
        if self.steps.len() <= MOST_STEPS {
            return Ok(());
        }
        let message = format!("the sites would need more than {MOST_STEPS} steps");
        Err(ImportError { place: at.place.clone(), message })
    }
}

/// Returns what Kirin has for a directive that neither answers nor adds something: whether it does
/// it by itself, and the text.
fn other(name: &str) -> (bool, &'static str) {
    match name {
        "push" => (false, "clients no longer accept pushed responses"),
        "tracing" => (false, "write `endpoint` in `[traces]` (docs/traces.md)"),
        "metrics" => (false, "write `metrics = \"127.0.0.1:9145\"` (docs/metrics.md)"),
        "templates" => (false, "Kirin has directives of SSI, `ssi = true` (docs/ssi.md)"),
        "acme_server" => (false, "Kirin is no authority"),
        "map" => (false, "write `match` of routes, or a table of `redirects` (docs/routes.md)"),
        "vars" | "method" | "invoke" | "log_append" | "log_name" => (false, "not there in Kirin"),
        "intercept" | "copy_response" | "copy_response_headers" => {
            (false, "write `error_pages` with `intercept_errors` (docs/routes.md)")
        }
        "fs" => (false, "`files:` has directories of this machine"),
        _ => (false, "not known here"),
    }
}
