//! Reads statements of VCL into answers, and what is added to them.

use toml::{Table, Value};

use crate::draft::{Draft, append};
use crate::error::ImportError;
use crate::report::{Outcome, Place};
use crate::section::Section;
use crate::steps::effects::{Effect, Scoped, steps_of};
use crate::steps::{HostStep, Scope};
use crate::vcl::backends::Backends;
use crate::vcl::conditions::Lists;
use crate::vcl::statements::{Action, action};
use crate::vcl::tokens::Token;
use crate::vcl::tree::{Statement, StatementKind};

/// The most statements inside each other.
pub(super) const MOST_DEPTH: usize = 32;

/// The most answers.
const MOST_ANSWERS: usize = 5_000;

/// An answer: what a route does before effects are added.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) scope: Scope,
    pub(super) route: Section,
    pub(super) closed: Option<String>,
}

pub(super) struct VclReader<'a> {
    pub(super) draft: &'a mut Draft,
    pub(super) backends: Backends,
    pub(super) lists: Lists,
    pub(super) subroutine: String,
    pub(super) effects: Vec<Scoped>,
    pub(super) refusals: Vec<Answer>,
    /// The choices of backends. Of two for a request the later one counts, but in one `if` the
    /// earlier one.
    pub(super) choices: Vec<Vec<Answer>>,
    /// The addresses that may purge, by a refusal of all others.
    pub(super) purgers: Option<Vec<Value>>,
}

impl<'a> VclReader<'a> {
    pub(super) fn new(draft: &'a mut Draft) -> Self {
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

    pub(super) fn body(
        &mut self,
        body: &[Statement],
        scope: &Scope,
        depth: usize,
    ) -> Result<(), ImportError> {
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

    pub(super) fn simple(&mut self, statement: &Statement, words: &[Token], scope: &Scope) {
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

    pub(super) fn refuse(&mut self, statement: &Statement, scope: &Scope, status: u16) {
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
    pub(super) fn purge(&mut self, scope: &Scope, outcome: &mut Outcome) {
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

    /// Returns the steps: refusals, then choices of backends, then the default backend.
    pub(super) fn steps(mut self, start: &Place) -> Result<Vec<HostStep>, ImportError> {
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

/// Returns whether a scope is of the methods by which pages are removed.
fn is_of_purge(scope: &Scope) -> bool {
    let methods = scope.conditions.get("methods").and_then(Value::as_array);
    methods.is_some_and(|methods| {
        methods.iter().all(|method| matches!(method.as_str(), Some("PURGE" | "BAN" | "REFRESH")))
    })
}
