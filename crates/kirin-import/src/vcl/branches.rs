//! Branches of `if`: what is in them is for the requests of their condition.

use toml::{Table, Value};

use crate::draft::one_line;
use crate::error::ImportError;
use crate::report::Outcome;
use crate::section::Section;
use crate::steps::effects::{Effect, Scoped};
use crate::steps::{PathPattern, Scope};
use crate::vcl::conditions::{Condition, negated, read};
use crate::vcl::reader::{Answer, MOST_DEPTH, VclReader};
use crate::vcl::statements::{Action, action};
use crate::vcl::tokens::{Token, line_of};
use crate::vcl::tree::{Branch, Statement, StatementKind};

impl VclReader<'_> {
    pub(super) fn branches(
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
    pub(super) fn hits(
        &mut self,
        statement: &Statement,
        branches: &[Branch],
    ) -> Result<(), ImportError> {
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
    pub(super) fn within(
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

    pub(super) fn branch(
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
                        among them. If it refuses clients, PROTECTION NOT CARRIED OVER for these";
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
    pub(super) fn later(&mut self, body: &[Statement], name: &str, scope: &Scope, depth: usize) {
        for statement in body {
            let StatementKind::Simple(words) = &statement.kind else {
                self.other(std::slice::from_ref(statement), name, depth);
                continue;
            };
            match action(&self.subroutine, words).0 {
                Action::Backend(..) => self.simple(statement, words, scope),
                Action::Refuse(_) => {
                    let text = "PROTECTION NOT CARRIED OVER: its condition is that of no branch \
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
    pub(super) fn not_carried(
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
            ". PROTECTION NOT CARRIED OVER, so the routes are closed"
        } else if self.passes(body, 0) {
            self.effects.push(Scoped { scope: wide, effect: Effect::NoCache });
            ". The routes have no cache"
        } else {
            ""
        };
        self.draft.notes.left_out(&statement.place, &line, &format!("{problem}{text}"));
        self.other(body, "an `if` that was left out", 0);
    }

    pub(super) fn close(&mut self, statement: &Statement, scope: Scope, reason: &str) {
        let mut route = Section::default();
        route.comment(statement.place.to_string());
        self.refusals.push(Answer { scope, route, closed: Some(one_line(reason)) });
    }

    /// Returns whether any statement refuses clients.
    pub(super) fn refuses(&self, body: &[Statement], depth: usize) -> bool {
        self.any(body, depth, &|action| matches!(action, Action::Refuse(_)))
    }

    /// Returns whether any statement bypasses the cache.
    pub(super) fn passes(&self, body: &[Statement], depth: usize) -> bool {
        let is_pass = |action: &Action| match action {
            Action::Effects(effects) => effects.iter().any(|e| matches!(e, Effect::NoCache)),
            _ => false,
        };
        self.any(body, depth, &is_pass)
    }

    pub(super) fn any(
        &self,
        body: &[Statement],
        depth: usize,
        is: &dyn Fn(&Action) -> bool,
    ) -> bool {
        body.iter().any(|statement| match &statement.kind {
            StatementKind::Simple(words) => is(&action(&self.subroutine, words).0),
            StatementKind::Block(_, inner) => depth < MOST_DEPTH && self.any(inner, depth + 1, is),
            StatementKind::If(branches) => {
                depth < MOST_DEPTH && branches.iter().any(|(_, body)| self.any(body, depth + 1, is))
            }
        })
    }

    /// Leaves out statements, each with its text.
    pub(super) fn other(&mut self, body: &[Statement], name: &str, depth: usize) {
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
}

/// Returns the condition of a later branch, if those before it can be negated.
fn otherwise(condition: Condition, earlier: &[Scope]) -> Option<Condition> {
    let [only] = earlier else { return None };
    let not = negated(only)?;
    let scopes: Option<Vec<_>> =
        condition.scopes.iter().map(|scope| scope.both(&not).ok().flatten()).collect();
    Some(Condition { scopes: scopes?, ..condition })
}
