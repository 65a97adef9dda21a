//! `default.vcl`: the configuration of Varnish.
//!
//! Kirin has no program like VCL. The usual statements of `vcl_recv`, `vcl_backend_response` and
//! `vcl_deliver` become keys of routes, and all others are left out, with their text.

mod backends;
mod conditions;
mod statements;
#[cfg(test)]
mod tests;
mod tokens;
mod tree;

use toml::{Table, Value};

use crate::draft::{Draft, append, one_line};
use crate::error::ImportError;
use crate::files::Files;
use crate::report::{Import, Outcome, Place};
use crate::section::Section;
use crate::steps::effects::{Effect, Scoped, steps_of};
use crate::steps::{HostStep, PathPattern, Scope, sites};
use crate::vcl::backends::{Backends, access_list};
use crate::vcl::conditions::{Condition, Lists, negated, read};
use crate::vcl::statements::{Action, action};
use crate::vcl::tokens::{Token, line_of};
use crate::vcl::tree::{Branch, Statement, StatementKind};

/// The most statements inside each other.
const MOST_DEPTH: usize = 32;

/// The most answers.
const MOST_ANSWERS: usize = 5_000;

/// Imports a configuration of Varnish.
///
/// # Errors
/// Returns an error if a file cannot be read or is malformed.
pub fn import(file: &str, files: &dyn Files) -> Result<Import, ImportError> {
    let declarations = tree::read(file, files)?;
    let start = Place { file: file.to_owned(), line: 1 };
    let mut draft = Draft::default();
    let section = &mut draft.listener("*:80").section;
    section.comment("Write the address that `varnishd -a` had.");
    let mut reader = VclReader::new(&mut draft);
    for declaration in &declarations {
        let line = line_of(&declaration.words);
        match declaration.word(0) {
            "backend" | "probe" => reader.backends.declare(declaration, reader.draft),
            "acl" => access_list(declaration, &mut reader.lists, reader.draft),
            "vcl" => reader.draft.notes.by_itself(&declaration.place, &line, "a version"),
            "import" => {
                let text = "a module: the statements that use it are below";
                reader.draft.notes.by_itself(&declaration.place, &line, text);
            }
            "sub" => {}
            _ => reader.draft.notes.unknown(&declaration.place, &line),
        }
    }
    let order = [
        "vcl_init",
        "vcl_recv",
        "vcl_hash",
        "vcl_backend_fetch",
        "vcl_backend_response",
        "vcl_deliver",
    ];
    for name in order {
        let found = declarations.iter().filter(|d| d.word(0) == "sub" && d.word(1) == name);
        for declaration in found {
            reader.subroutine = name.to_owned();
            reader.body(&declaration.body, &Scope::default(), 0)?;
        }
    }
    let others = declarations.iter().filter(|d| d.word(0) == "sub" && !order.contains(&d.word(1)));
    for declaration in others {
        reader.other(&declaration.body, declaration.word(1), 0);
    }
    let steps = reader.steps(&start)?;
    draft.sites = sites(steps, &start)?;
    let mut import = draft.finish(&start)?;
    import.notes.sort_by(|one, other| {
        (&one.place.file, one.place.line).cmp(&(&other.place.file, other.place.line))
    });
    Ok(import)
}

/// An answer: what a route does before effects are added.
#[derive(Debug)]
struct Answer {
    scope: Scope,
    route: Section,
    closed: Option<String>,
}

struct VclReader<'a> {
    draft: &'a mut Draft,
    backends: Backends,
    lists: Lists,
    subroutine: String,
    effects: Vec<Scoped>,
    refusals: Vec<Answer>,
    /// The choices of backends. Of two for a request the later one counts, but in one `if` the
    /// earlier one.
    choices: Vec<Vec<Answer>>,
    /// The addresses that may purge, by a refusal of all others.
    purgers: Option<Vec<Value>>,
}

impl<'a> VclReader<'a> {
    fn new(draft: &'a mut Draft) -> Self {
        Self {
            draft,
            backends: Backends::default(),
            lists: Lists::default(),
            subroutine: String::new(),
            effects: Vec::new(),
            refusals: Vec::new(),
            choices: Vec::new(),
            purgers: None,
        }
    }

    fn body(&mut self, body: &[Statement], scope: &Scope, depth: usize) -> Result<(), ImportError> {
        for statement in body {
            if self.refusals.len() + self.choices.len() + self.effects.len() > MOST_ANSWERS {
                let message = format!("the subroutines have more than {MOST_ANSWERS} rules");
                return Err(ImportError { place: statement.place.clone(), message });
            }
            match &statement.kind {
                StatementKind::Simple(words) => self.simple(statement, words, scope),
                StatementKind::If(branches) if depth < MOST_DEPTH => {
                    self.branches(statement, branches, scope, depth)?;
                }
                _ => {
                    self.draft.notes.left_out(
                        &statement.place,
                        &statement.line(),
                        "not known here",
                    );
                }
            }
        }
        Ok(())
    }

    fn simple(&mut self, statement: &Statement, words: &[Token], scope: &Scope) {
        let line = statement.line();
        if self.subroutine == "vcl_init" && self.backends.director(words) {
            self.draft.notes.carried(&statement.place, &line, "");
            return;
        }
        let (action, outcome) = action(&self.subroutine, words);
        let mut outcome = outcome;
        match action {
            Action::Effects(effects) => {
                let scoped = |effect| Scoped { scope: scope.clone(), effect };
                self.effects.extend(effects.into_iter().map(scoped));
            }
            Action::Backend(name, hash) => {
                let place = self.backends.place(&name, hash.as_deref(), self.draft);
                let mut route = Section::default();
                route.comment(statement.place.to_string());
                let mut closed = None;
                match place {
                    Some(place) => route.set("try", vec![place]),
                    None => {
                        closed = Some("the backend has no address".to_owned());
                        let text = "there is no such backend with an address. The route is closed";
                        outcome = Outcome::LeftOut(text.to_owned());
                    }
                }
                self.choices.push(vec![Answer { scope: scope.clone(), route, closed }]);
            }
            Action::Refuse(status) => self.refuse(statement, scope, status),
            Action::Purge => self.purge(scope, &mut outcome),
            Action::None => {}
        }
        self.draft.notes.add(&statement.place, &line, outcome);
    }

    fn refuse(&mut self, statement: &Statement, scope: &Scope, status: u16) {
        if is_of_purge(scope) {
            // Only `purge_from` may purge: others reach the server with this method.
            let not = scope.conditions.get("not").and_then(Value::as_table);
            let clients = not.and_then(|not| not.get("clients")).and_then(Value::as_array);
            self.purgers = clients.cloned().or(self.purgers.take());
            return;
        }
        let mut route = Section::default();
        route.comment(statement.place.to_string());
        route.set("deny", if status == 404 { 404 } else { 403 });
        self.refusals.push(Answer { scope: scope.clone(), route, closed: None });
    }

    /// Carries the addresses that may purge.
    fn purge(&mut self, scope: &Scope, outcome: &mut Outcome) {
        let list =
            |conditions: &Table| conditions.get("clients").and_then(Value::as_array).cloned();
        // `if (!client.ip ~ purge) { … }` may stand before it.
        let clients = list(&scope.conditions).or(self.purgers.take());
        match clients {
            Some(clients) => {
                let store = self.draft.table("[store]");
                for client in clients {
                    append(store, "purge_from", client);
                }
            }
            None => {
                let text = "`kirin purge` removes pages. Write `purge_from` in `[store]` for the \
                            method PURGE (docs/purge.md)";
                *outcome = Outcome::ByItself(text.to_owned());
            }
        }
    }

    fn branches(
        &mut self,
        statement: &Statement,
        branches: &[Branch],
        scope: &Scope,
        depth: usize,
    ) -> Result<(), ImportError> {
        if branches
            .first()
            .is_some_and(|(tokens, _)| tokens.first().is_some_and(|token| token.text == "obj.hits"))
        {
            return self.hits(statement, branches);
        }
        let before = self.choices.len();
        let mut earlier: Vec<Scope> = Vec::new();
        for (number, (tokens, body)) in branches.iter().enumerate() {
            let condition = if tokens.is_empty() {
                Ok(Condition { scopes: vec![Scope::default()], ..Condition::default() })
            } else {
                read(tokens, &self.lists)
            };
            let condition = condition.and_then(|condition| self.within(condition, scope, tokens));
            let condition = match condition {
                Ok(condition) if number == 0 => condition,
                Ok(condition) => match otherwise(condition, &earlier) {
                    Some(condition) => condition,
                    // Of a later branch only choices and refusals are the same.
                    None => {
                        self.later(
                            body,
                            &format!("the branch {} of an `if`", number + 1),
                            scope,
                            depth,
                        );
                        continue;
                    }
                },
                Err((problem, paths)) => {
                    self.not_carried(statement, body, &problem, &paths, scope);
                    continue;
                }
            };
            self.branch(statement, &condition, body, depth)?;
            earlier.extend(condition.scopes);
        }
        let group: Vec<_> = self.choices.drain(before..).flatten().collect();
        if !group.is_empty() {
            self.choices.push(group);
        }
        Ok(())
    }

    /// Reads what `vcl_deliver` says about hits, which `Cache-Status` says by itself.
    fn hits(&mut self, statement: &Statement, branches: &[Branch]) -> Result<(), ImportError> {
        let text = "`Cache-Status` says it (docs/cache.md)";
        self.draft.notes.by_itself(&statement.place, &statement.line(), text);
        for inner in branches.iter().flat_map(|(_, body)| body) {
            let outcome = match &inner.kind {
                StatementKind::Simple(words) => action(&self.subroutine, words).1,
                _ => Outcome::LeftOut("it depends on `obj.hits`".to_owned()),
            };
            let outcome = match outcome {
                Outcome::Carried(_) => Outcome::LeftOut("it depends on `obj.hits`".to_owned()),
                other => other,
            };
            self.draft.notes.add(&inner.place, &inner.line(), outcome);
        }
        Ok(())
    }

    /// Returns a condition within the scope around it.
    fn within(
        &self,
        mut condition: Condition,
        scope: &Scope,
        tokens: &[Token],
    ) -> Result<Condition, (String, Vec<PathPattern>)> {
        let mut scopes = Vec::new();
        for inner in &condition.scopes {
            let both = scope.both(inner).map_err(|problem| (problem, Vec::new()))?;
            scopes.extend(both);
        }
        if scopes.is_empty() && !condition.scopes.is_empty() {
            return Err((format!("`{}` never holds here", line_of(tokens)), Vec::new()));
        }
        condition.scopes = scopes;
        Ok(condition)
    }

    fn branch(
        &mut self,
        statement: &Statement,
        condition: &Condition,
        body: &[Statement],
        depth: usize,
    ) -> Result<(), ImportError> {
        let line = statement.line();
        let passes = |statement: &Statement| match &statement.kind {
            StatementKind::Simple(words) => {
                line_of(words).replace(' ', "").starts_with("return(pass")
            }
            _ => false,
        };
        let only_passes = body.iter().all(passes) && self.subroutine == "vcl_recv";
        if condition.cookies && !only_passes {
            self.not_carried(statement, body, "a condition on cookies", &[], &Scope::default());
            return Ok(());
        }
        if !condition.bypass.is_empty() && only_passes {
            let names = condition.bypass.iter().filter(|name| *name != "header:Authorization");
            let names: Vec<Value> = names.map(|name| Value::from(name.as_str())).collect();
            if !names.is_empty() {
                let keys = Table::from_iter([("bypass".to_owned(), Value::Array(names))]);
                let effect = Effect::Cache(keys);
                self.effects.push(Scoped { scope: Scope::default(), effect });
            }
            let text = "Requests with `Authorization` get only responses for everybody anyway.";
            self.draft.notes.carried(&statement.place, &line, text);
            return Ok(());
        }
        let methods = condition.scopes.iter().all(|scope| {
            scope.paths.is_empty()
                && scope.hosts.is_empty()
                && scope.conditions.keys().all(|key| key == "methods" || key == "not")
                && !scope.conditions.contains_key("clients")
        });
        if methods && body.iter().all(passes) {
            let text = "only GET and HEAD are answered by the cache";
            self.draft.notes.by_itself(&statement.place, &line, text);
            return Ok(());
        }
        if condition.segments {
            let text = "carried for whole segments of a path: names that only begin so are not \
                        among them. If it refuses clients, protection is not carried over for these";
            self.draft.notes.left_out(&statement.place, &line, text);
        } else {
            self.draft.notes.carried(&statement.place, &line, "");
        }
        for scope in &condition.scopes {
            self.body(body, scope, depth + 1)?;
        }
        Ok(())
    }

    /// Reads a later branch, of which the condition is not known: choices of backends are the
    /// same, because the branches before come first.
    fn later(&mut self, body: &[Statement], name: &str, scope: &Scope, depth: usize) {
        for statement in body {
            let StatementKind::Simple(words) = &statement.kind else {
                self.other(std::slice::from_ref(statement), name, depth);
                continue;
            };
            match action(&self.subroutine, words).0 {
                Action::Backend(..) => self.simple(statement, words, scope),
                Action::Refuse(_) => {
                    let text = "protection is not carried over: its condition is that of no branch \
                                before it. The routes are closed";
                    self.draft.notes.left_out(&statement.place, &statement.line(), text);
                    self.close(statement, scope.clone(), "a branch of an `if`");
                }
                _ => {
                    let text = format!("it is in {name}, whose condition Kirin cannot write");
                    self.draft.notes.left_out(&statement.place, &statement.line(), &text);
                }
            }
        }
    }

    /// Leaves out a branch whose condition Kirin does not have. If it refuses clients, its paths
    /// are closed. If it bypasses the cache, its paths have no cache.
    fn not_carried(
        &mut self,
        statement: &Statement,
        body: &[Statement],
        problem: &str,
        paths: &[PathPattern],
        scope: &Scope,
    ) {
        let narrow = Scope::of_paths(paths.to_vec());
        let wide = scope.both(&narrow).ok().flatten().unwrap_or_else(|| scope.clone());
        let line = statement.line();
        let text = if self.refuses(body, 0) {
            self.close(statement, wide, problem);
            ". Protection is not carried over, so the routes are closed"
        } else if self.passes(body, 0) {
            self.effects.push(Scoped { scope: wide, effect: Effect::NoCache });
            ". The routes have no cache"
        } else {
            ""
        };
        self.draft.notes.left_out(&statement.place, &line, &format!("{problem}{text}"));
        self.other(body, "an `if` that was left out", 0);
    }

    fn close(&mut self, statement: &Statement, scope: Scope, reason: &str) {
        let mut route = Section::default();
        route.comment(statement.place.to_string());
        self.refusals.push(Answer { scope, route, closed: Some(one_line(reason)) });
    }

    /// Returns whether any statement refuses clients.
    fn refuses(&self, body: &[Statement], depth: usize) -> bool {
        self.any(body, depth, &|action| matches!(action, Action::Refuse(_)))
    }

    /// Returns whether any statement bypasses the cache.
    fn passes(&self, body: &[Statement], depth: usize) -> bool {
        let is_pass = |action: &Action| match action {
            Action::Effects(effects) => effects.iter().any(|e| matches!(e, Effect::NoCache)),
            _ => false,
        };
        self.any(body, depth, &is_pass)
    }

    fn any(&self, body: &[Statement], depth: usize, is: &dyn Fn(&Action) -> bool) -> bool {
        body.iter().any(|statement| match &statement.kind {
            StatementKind::Simple(words) => is(&action(&self.subroutine, words).0),
            StatementKind::Block(_, inner) => depth < MOST_DEPTH && self.any(inner, depth + 1, is),
            StatementKind::If(branches) => {
                depth < MOST_DEPTH && branches.iter().any(|(_, body)| self.any(body, depth + 1, is))
            }
        })
    }

    /// Leaves out statements, each with its text.
    fn other(&mut self, body: &[Statement], name: &str, depth: usize) {
        for statement in body {
            let text = format!("it is in {name}, which Kirin does not have");
            match &statement.kind {
                StatementKind::If(branches) if depth < MOST_DEPTH => {
                    self.draft.notes.left_out(&statement.place, &statement.line(), &text);
                    branches.iter().for_each(|(_, body)| self.other(body, name, depth + 1));
                }
                StatementKind::Simple(words) if line_of(words).starts_with("return") => {}
                _ => self.draft.notes.left_out(&statement.place, &statement.line(), &text),
            }
        }
    }

    /// Returns the steps: refusals, then choices of backends, then the default backend.
    fn steps(mut self, start: &Place) -> Result<Vec<HostStep>, ImportError> {
        let everything = Scope::default();
        let mut answers = std::mem::take(&mut self.refusals);
        answers.extend(self.choices.drain(..).rev().flatten());
        let mut route = Section::default();
        route.comment(start.to_string());
        let default = self.backends.default_place(self.draft);
        let closed = default.is_none().then(|| "there is no backend with an address".to_owned());
        if let Some(place) = default {
            route.set("try", vec![place]);
        }
        answers.push(Answer { scope: everything.clone(), route, closed });
        let base = Scoped { scope: everything, effect: Effect::Cache(Table::new()) };
        let effects: Vec<_> = std::iter::once(base).chain(self.effects).collect();
        let mut steps = Vec::new();
        for answer in answers {
            let closed = answer.closed.as_deref();
            let found = steps_of(&answer.route, closed, &answer.scope, &effects, "", false);
            let found = found.or_else(|| {
                let reason = Some("its conditions cannot be combined");
                steps_of(&answer.route, reason, &answer.scope, &[], "", false)
            });
            for (scope, mut step) in found.unwrap_or_default() {
                step.conditions = scope.conditions;
                steps.push(HostStep { hosts: scope.hosts, step });
            }
        }
        Ok(steps)
    }
}

/// Returns the condition of a later branch, if those before it can be negated.
fn otherwise(condition: Condition, earlier: &[Scope]) -> Option<Condition> {
    let [only] = earlier else { return None };
    let not = negated(only)?;
    let scopes: Option<Vec<_>> =
        condition.scopes.iter().map(|scope| scope.both(&not).ok().flatten()).collect();
    Some(Condition { scopes: scopes?, ..condition })
}

/// Returns whether a scope is of the methods by which pages are removed.
fn is_of_purge(scope: &Scope) -> bool {
    let methods = scope.conditions.get("methods").and_then(Value::as_array);
    methods.is_some_and(|methods| {
        methods.iter().all(|method| matches!(method.as_str(), Some("PURGE" | "BAN" | "REFRESH")))
    })
}
