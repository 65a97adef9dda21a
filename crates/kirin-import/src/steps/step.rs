//! An entry of the list: what it is for, and what it does.

use toml::Table;

use crate::report::Place;
use crate::section::Section;
use crate::steps::path_pattern::PathPattern;

/// An entry of the list: what it is for, and what it does.
#[derive(Debug, Clone, Default)]
pub(crate) struct Step {
    /// The paths. One of them must match.
    pub(crate) paths: Vec<PathPattern>,
    /// The `match` of the route. All of it must hold.
    pub(crate) conditions: Table,
    /// The other keys of the route, and its comments.
    pub(crate) route: Section,
}

impl Step {
    /// Returns a step for these paths, with the place that it comes from as a comment.
    pub(crate) fn new(paths: Vec<PathPattern>, comment: impl Into<String>) -> Self {
        let mut step = Self { paths, ..Self::default() };
        step.route.comment(comment);
        step
    }

    /// Returns the step of all requests that no other one of its site answers.
    pub(crate) fn nothing(place: &Place) -> Self {
        let mut step = Self::new(vec![PathPattern::everything()], place.to_string());
        step.route.comment("All other requests.");
        step.route.set("deny", 404);
        step
    }

    /// Replaces what the step does by a refusal. The reason becomes a comment.
    pub(crate) fn close(&mut self, reason: &str) {
        let comments = std::mem::take(&mut self.route.comments);
        self.route = Section { comments, ..Section::default() };
        self.route.comment(reason);
        self.route.set("deny", 403);
    }
}
