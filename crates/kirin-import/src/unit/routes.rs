//! `routes`: the steps, in the order in which Unit tries them.

use crate::draft::Draft;
use crate::error::ImportError;
use crate::report::{Outcome, Place};
use crate::steps::{HostStep, PathPattern, Scope, Step};
use crate::unit::action;
use crate::unit::conditions::Conditions;
use crate::unit::json::{Json, Node};
use crate::unit::targets::Targets;

/// The most routes that pass to each other.
const MOST_DEPTH: usize = 16;

/// The most steps of all routes together.
const MOST_STEPS: usize = 10_000;

/// Reads the steps of routes, and those of the routes to which they pass.
pub(crate) struct StepReader<'a> {
    pub(crate) file: &'a str,
    /// The value of `routes`.
    pub(crate) routes: Option<&'a Node>,
    pub(crate) draft: &'a mut Draft,
    pub(crate) targets: &'a mut Targets,
    pub(crate) steps: Vec<HostStep>,
    /// The names of the routes that are being read.
    pub(crate) open: Vec<String>,
    /// The names of all routes that were read.
    pub(crate) read: Vec<String>,
}

impl<'a> StepReader<'a> {
    /// Reads what a `pass` leads to.
    ///
    /// # Errors
    /// Returns an error if there are too many steps.
    pub(crate) fn pass(
        &mut self,
        pass: &str,
        place: &Place,
        outer: &Scope,
    ) -> Result<(), ImportError> {
        if pass != "routes" && !pass.starts_with("routes/") {
            let mut step = Step::new(vec![PathPattern::everything()], place.to_string());
            match self.targets.place(pass) {
                Some(target) => step.route.set("try", vec![target]),
                None => step.close("What it passed to is not in the configuration."),
            }
            return self.add(step, outer, place);
        }
        let circle = self.open.iter().any(|name| name == pass);
        let list = self.named(pass).filter(|_| !circle && self.open.len() < MOST_DEPTH);
        let Some(list) = list else {
            let text = "there are no such routes, or they pass to themselves. The route is closed";
            self.draft.notes.left_out(place, &format!("\"pass\": \"{pass}\""), text);
            let mut step = Step::new(vec![PathPattern::everything()], place.to_string());
            step.close("The routes to which it passed are not there.");
            return self.add(step, outer, place);
        };
        self.open.push(pass.to_owned());
        self.read.push(pass.to_owned());
        for step in list {
            self.step(step, outer)?;
        }
        self.open.pop();
        self.end(outer, place)
    }

    /// Returns the steps of routes by the name in `pass`.
    fn named(&self, pass: &str) -> Option<&'a [Node]> {
        let node = match pass.strip_prefix("routes/") {
            Some(name) => self.routes?.get(name)?,
            None => self.routes?,
        };
        match &node.value {
            Json::List(list) => Some(list),
            _ => None,
        }
    }

    /// Closes the paths and hosts for which routes inside others have no answer: Unit does not
    /// return to the outer ones.
    fn end(&mut self, outer: &Scope, place: &Place) -> Result<(), ImportError> {
        if outer.paths.is_empty() && outer.conditions.is_empty() && outer.hosts.is_empty() {
            return Ok(());
        }
        let mut step = Step::new(vec![PathPattern::everything()], place.to_string());
        step.route.set("deny", 404);
        self.add(step, outer, place)
    }

    fn step(&mut self, node: &Node, outer: &Scope) -> Result<(), ImportError> {
        let place = self.place(node.line);
        let conditions = node.get("match").map_or_else(Conditions::none, Conditions::read);
        let conditions = conditions.inside(outer);
        for entry in node.entries().iter().filter(|entry| entry.key != "match") {
            if entry.key != "action" {
                self.draft.notes.unknown(&self.place(entry.line), &format!("\"{}\"", entry.key));
            }
        }
        let Some(act) = node.get("action") else {
            self.draft.notes.left_out(&place, "a step", "it has no `action`");
            return Ok(());
        };
        if !conditions.problems.is_empty() {
            return self.not_carried(&conditions, act, &place);
        }
        self.note_match(node, &conditions);
        for alternative in &conditions.alternatives {
            self.alternative(alternative, act, &place)?;
        }
        Ok(())
    }

    /// Writes the route of a step in one of its forms.
    fn alternative(
        &mut self,
        alternative: &Scope,
        act: &Node,
        place: &Place,
    ) -> Result<(), ImportError> {
        let everything = [PathPattern::everything()];
        let paths = if alternative.paths.is_empty() { &everything } else { &*alternative.paths };
        let read = action::read(act, paths, self.targets);
        for (line, directive, outcome) in read.notes {
            self.draft.notes.add(&self.place(line), &directive, outcome);
        }
        if let Some(routes) = read.routes {
            return self.pass(&routes, place, alternative);
        }
        let mut step = Step::new(paths.to_vec(), place.to_string());
        step.route.keys = read.route.keys;
        let places = ["try", "redirect", "deny"];
        if let Some(reason) = read.closed {
            step.close(&format!("Closed: {reason}."));
        } else if places.iter().all(|key| step.route.get(key).is_none()) {
            step.close("Closed: nothing of the action could be carried over.");
        }
        self.add(step, alternative, place)
    }

    /// Leaves out a step whose conditions Kirin does not have. Where it may protect something, a
    /// closed route stands in its place.
    fn not_carried(
        &mut self,
        conditions: &Conditions,
        act: &Node,
        place: &Place,
    ) -> Result<(), ImportError> {
        let everywhere = [PathPattern::everything()];
        let narrow =
            |alternative: &Scope| !alternative.paths.is_empty() && alternative.paths != everywhere;
        let passes = act.get("pass").and_then(Node::text).unwrap_or_default();
        let protects = conditions.by_client || action::refuses(act) || passes.starts_with("routes");
        let closed = protects || conditions.alternatives.iter().all(narrow);
        let end = match (closed, protects) {
            (true, true) => ". PROTECTION NOT CARRIED OVER, so the route is closed",
            (true, false) => ". The route is closed, because the step may protect something",
            (false, _) => ". The step has no route, so that later steps answer its requests",
        };
        for (line, problem) in &conditions.problems {
            let place = if *line == 0 { place.clone() } else { self.place(*line) };
            self.draft.notes.left_out(&place, "match", &format!("{problem}{end}"));
        }
        if !closed {
            return Ok(());
        }
        for alternative in &conditions.alternatives {
            let mut step = Step::new(vec![PathPattern::everything()], place.to_string());
            let problem = conditions.problems.first().map_or("", |(_, problem)| problem);
            step.close(&format!("Closed: {}.", crate::draft::one_line(problem)));
            self.add(step, alternative, place)?;
        }
        Ok(())
    }

    fn note_match(&mut self, node: &Node, conditions: &Conditions) {
        let entries = node.get("match").map(Node::entries).unwrap_or_default();
        for entry in entries {
            let remark = conditions.remarks.iter().find(|(line, text)| {
                *line == entry.line && text.starts_with(&format!("`{}`", entry.key))
            });
            let directive = format!("\"{}\": {}", entry.key, entry.node.summary());
            let place = self.place(entry.line);
            match remark {
                Some((_, remark)) => self.draft.notes.left_out(&place, &directive, remark),
                None => self.draft.notes.carried(&place, &directive, ""),
            }
        }
    }

    fn add(&mut self, mut step: Step, to: &Scope, place: &Place) -> Result<(), ImportError> {
        if !to.paths.is_empty() {
            step.paths.clone_from(&to.paths);
        }
        step.conditions.clone_from(&to.conditions);
        self.steps.push(HostStep { hosts: to.hosts.clone(), step });
        if self.steps.len() <= MOST_STEPS {
            return Ok(());
        }
        let message = format!(
            "the routes have more than {MOST_STEPS} steps, with those to which \
                               they pass"
        );
        Err(ImportError { place: place.clone(), message })
    }

    fn place(&self, line: usize) -> Place {
        Place { file: self.file.to_owned(), line }
    }

    /// Adds a note for an outcome that is not one of a directive.
    pub(crate) fn remark(&mut self, place: &Place, directive: &str, outcome: Outcome) {
        self.draft.notes.add(place, directive, outcome);
    }
}
