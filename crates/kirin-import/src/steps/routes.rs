//! Routes of which the most specific path counts, from steps of which the first counts.
//!
//! For each path that any step has, the routes are all steps that cover it, in their order, up to
//! the first without conditions. So a refusal that stands before other steps is a refusal on all
//! of their paths, too.

use std::collections::{HashMap, HashSet};

use toml::Value;

use crate::error::ImportError;
use crate::report::Place;
use crate::section::Section;
use crate::steps::path_pattern::PathPattern;
use crate::steps::step::Step;

/// The most routes of a site. Many steps with conditions and many paths could need more.
const MOST_ROUTES: usize = 10_000;

/// Returns the routes that answer as the steps do, without their header.
///
/// # Errors
/// Returns an error if there were too many.
pub(crate) fn routes(steps: &[Step], file: &Place) -> Result<Vec<Section>, ImportError> {
    let index = Index::new(steps);
    let too_many = || ImportError {
        place: file.clone(),
        message: format!(
            "a site would need more than {MOST_ROUTES} routes. Import its parts one by one."
        ),
    };
    let mut rules: HashMap<&PathPattern, Vec<usize>> = HashMap::new();
    let mut patterns = index.patterns.clone();
    let crossings = index.crossings(MOST_ROUTES).ok_or_else(too_many)?;
    patterns.extend(crossings.iter().cloned());
    let mut count = 0;
    for pattern in &patterns {
        let found = index.rules(pattern);
        count += found.len();
        if count > MOST_ROUTES {
            return Err(too_many());
        }
        rules.insert(pattern, found);
    }
    let crossings: HashSet<_> = crossings.iter().collect();
    let mut sections = Vec::new();
    for pattern in &patterns {
        let Some(own) = rules.get(pattern) else { continue };
        let end = index.needed(pattern, own, &rules, crossings.contains(pattern));
        for step in own.iter().take(end).filter_map(|number| steps.get(*number)) {
            sections.push(route(step, pattern));
        }
    }
    Ok(sections)
}

/// The steps by their paths.
struct Index<'a> {
    steps: &'a [Step],
    by_pattern: HashMap<&'a PathPattern, Vec<usize>>,
    /// All patterns, in the order of the steps.
    patterns: Vec<PathPattern>,
    endings: Vec<&'a PathPattern>,
}

impl<'a> Index<'a> {
    fn new(steps: &'a [Step]) -> Self {
        let mut by_pattern: HashMap<&PathPattern, Vec<usize>> = HashMap::new();
        let (mut patterns, mut endings) = (Vec::new(), Vec::new());
        for (number, step) in steps.iter().enumerate() {
            for pattern in &step.paths {
                let numbers = by_pattern.entry(pattern).or_insert_with(|| {
                    patterns.push(pattern.clone());
                    if matches!(pattern, PathPattern::Ending(..)) {
                        endings.push(pattern);
                    }
                    Vec::new()
                });
                if numbers.last() != Some(&number) {
                    numbers.push(number);
                }
            }
        }
        Self { steps, by_pattern, patterns, endings }
    }

    /// Returns the patterns of paths that both an ending and a directory match, and that no step
    /// has. `None`: they are more than `most`.
    fn crossings(&self, most: usize) -> Option<Vec<PathPattern>> {
        let mut known: HashSet<PathPattern> = self.patterns.iter().cloned().collect();
        let mut crossings = Vec::new();
        let directories = |pattern: &&PathPattern| matches!(pattern, PathPattern::Below(_));
        for directory in self.patterns.iter().filter(directories) {
            for ending in &self.endings {
                let Some(both) = ending.both(directory) else { continue };
                if known.insert(both.clone()) {
                    crossings.push(both);
                }
                if crossings.len() > most {
                    return None;
                }
            }
        }
        Some(crossings)
    }

    /// Returns the numbers of the steps that cover a pattern, up to the first that always answers.
    fn rules(&self, pattern: &PathPattern) -> Vec<usize> {
        let mut numbers = Vec::new();
        let mut add = |pattern: &PathPattern| {
            numbers.extend(self.by_pattern.get(pattern).into_iter().flatten().copied());
        };
        let mut start = pattern.start();
        add(&PathPattern::Below(start.trim_end_matches('/').to_owned()));
        while let Some((directory, _)) = start.rsplit_once('/') {
            add(&PathPattern::Below(directory.to_owned()));
            start = directory;
        }
        if matches!(pattern, PathPattern::Exact(_)) {
            add(pattern);
        }
        self.endings.iter().filter(|ending| ending.covers(pattern)).for_each(|ending| add(ending));
        numbers.sort_unstable();
        numbers.dedup();
        let mut seen = HashSet::new();
        let mut ended = false;
        numbers.retain(|number| {
            let Some(step) = self.steps.get(*number).filter(|_| !ended) else { return false };
            ended = step.conditions.is_empty();
            seen.insert(step.conditions.to_string())
        });
        numbers
    }

    /// Returns how many of a pattern's steps need a route. The last ones need none if the route
    /// that Kirin asks next has exactly these.
    fn needed(
        &self,
        pattern: &PathPattern,
        own: &[usize],
        rules: &HashMap<&PathPattern, Vec<usize>>,
        is_crossing: bool,
    ) -> usize {
        let next = match pattern {
            PathPattern::Ending(directory, _) if is_crossing => {
                let next = rules.get(&PathPattern::Below(directory.clone()));
                return if next.is_some_and(|next| next == own) { 0 } else { own.len() };
            }
            PathPattern::Ending(..) => None,
            _ if !self.endings.is_empty() => None,
            PathPattern::Exact(path) => nearest(path, rules, true),
            PathPattern::Below(path) => nearest(path, rules, false),
        };
        match next {
            Some(next) if own.ends_with(next) => own.len() - next.len(),
            _ => own.len(),
        }
    }
}

/// Returns the steps of the nearest directory around a path.
fn nearest<'a>(
    path: &str,
    rules: &'a HashMap<&PathPattern, Vec<usize>>,
    itself: bool,
) -> Option<&'a Vec<usize>> {
    if itself {
        let own = PathPattern::Below(path.trim_end_matches('/').to_owned());
        if let Some(found) = rules.get(&own) {
            return Some(found);
        }
    }
    let mut path = path;
    while let Some((directory, _)) = path.rsplit_once('/') {
        if let Some(found) = rules.get(&PathPattern::Below(directory.to_owned())) {
            return Some(found);
        }
        path = directory;
    }
    None
}

/// Returns the route of a step for one of the paths that it covers.
fn route(step: &Step, pattern: &PathPattern) -> Section {
    let mut route = Section { comments: step.route.comments.clone(), ..Section::default() };
    route.set("path", pattern.to_string());
    if !step.conditions.is_empty() {
        route.set("match", step.conditions.clone());
    }
    route.keys.extend(step.route.keys.iter().cloned());
    for_path(&mut route, &step.paths, pattern);
    route
}

/// Changes `rewrite` and `redirect` of a route that was written for `paths` so that they are the
/// same for one of them or a deeper path.
pub(crate) fn for_path(route: &mut Section, paths: &[PathPattern], pattern: &PathPattern) {
    let base = paths.iter().find(|path| path.covers(pattern)).map_or("", PathPattern::start);
    let rest = pattern.start().strip_prefix(base.trim_end_matches('/')).unwrap_or("");
    for (key, value) in &mut route.keys {
        if let ("rewrite" | "redirect", Value::String(target)) = (key.as_str(), value)
            && !target.contains("{path}")
        {
            *target = with_rest(target, rest);
        }
    }
}

/// Returns a target of a `rewrite` or `redirect` for a deeper path of its route. Kirin appends only
/// what follows the route's own path.
fn with_rest(target: &str, rest: &str) -> String {
    if rest.is_empty() || rest == "/" {
        return target.to_owned();
    }
    format!("{}{rest}", target.trim_end_matches('/'))
}

#[cfg(test)]
mod tests {
    use toml::Table;

    use super::*;

    fn step(path: &str, condition: bool, target: &str) -> Step {
        let paths = match path.strip_prefix('*') {
            Some(end) => vec![PathPattern::ending("/", end).expect(path)],
            None => vec![PathPattern::below(path).expect(path)],
        };
        let mut step = Step { paths, ..Step::default() };
        if condition {
            step.conditions = Table::from_iter([("scheme".to_owned(), Value::from("http"))]);
        }
        step.route.set("rewrite", target);
        step
    }

    fn written(steps: &[Step]) -> String {
        let file = Place { file: "f".into(), line: 1 };
        let routes = routes(steps, &file).expect("routes");
        let line = |route: &Section| {
            let condition = if route.get("match").is_some() { " if" } else { "" };
            let value = |key| route.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
            format!("{}{condition} {}", value("path"), value("rewrite"))
        };
        routes.iter().map(line).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn a_condition_before_other_paths_holds_for_them_too() {
        let steps = [step("/", true, "/x"), step("/a", false, "/y"), step("/", false, "/z")];
        assert_eq!(written(&steps), "/ if /x, / /z, /a if /x/a, /a /y");
    }

    #[test]
    fn a_step_that_is_never_reached_has_no_route() {
        assert_eq!(written(&[step("/", false, "/x"), step("/a", false, "/y")]), "/ /x");
    }

    #[test]
    fn a_condition_behind_a_step_that_always_answers_has_no_route() {
        assert_eq!(written(&[step("/", false, "/x"), step("/", true, "/y")]), "/ /x");
    }

    #[test]
    fn what_the_shorter_path_says_is_not_written_twice() {
        let steps = [step("/a", true, "/x"), step("/", false, "/y")];
        assert_eq!(written(&steps), "/a if /x, / /y");
    }

    #[test]
    fn an_ending_before_a_directory_comes_first_there() {
        let steps = [step("*.php", false, "/x"), step("/a", false, "/y"), step("/", false, "/z")];
        assert_eq!(written(&steps), "*.php /x, /a /y, / /z, /a/*.php /x/a");
    }
}
