//! Static files: `static-map`, `check-static` and their options.

use toml::Value;

use crate::draft::Draft;
use crate::steps::{PathPattern, Step};
use crate::uwsgi::options::UwsgiOption;

/// The files that are served before the application.
#[derive(Debug, Default)]
pub(crate) struct Statics {
    /// Paths with directories of their own.
    pub(crate) steps: Vec<Step>,
    /// The directories of files of all paths.
    pub(crate) checked: Vec<String>,
    /// Extensions that are never files.
    pub(crate) skipped: Vec<Step>,
    index: Vec<Value>,
}

impl Statics {
    /// Reads an option. Returns whether it is one about static files.
    pub(crate) fn option(&mut self, option: &UwsgiOption, draft: &mut Draft, place: &str) -> bool {
        let directive = option.directive();
        let done = match option.key.as_str() {
            "static-map" => self.map(option, place, draft),
            "static-map2" => self.map2(option, place),
            "check-static" | "static-check" => {
                self.checked.push(option.value.trim_end_matches('/').to_owned());
                true
            }
            "static-index" => {
                self.index.push(Value::from(option.value.as_str()));
                true
            }
            "static-skip-ext" | "check-static-skip-ext" => self.skip(option, place),
            _ => return false,
        };
        if done {
            draft.notes.carried(&option.place, &directive, "");
        } else {
            let text = "Kirin cannot write the path. Write a route with `files:` (docs/files.md)";
            draft.notes.left_out(&option.place, &directive, text);
        }
        true
    }

    /// Returns the keys of a route of files.
    fn files(&self, route: &mut Step, places: Vec<String>) {
        route.route.set("try", places);
        route.route.set("index", Value::Array(self.index.clone()));
    }

    fn map(&mut self, option: &UwsgiOption, place: &str, draft: &mut Draft) -> bool {
        let Some((mount, directory)) = option.value.split_once('=') else { return false };
        let Some(path) = PathPattern::below(mount) else { return false };
        let directory = directory.trim_end_matches('/');
        let mut step = Step::new(vec![path.clone()], option.place.to_string());
        // Without `rewrite` the place behind the files sees the path of the request.
        match directory.strip_suffix(path.start()) {
            Some(root) if !root.is_empty() => {
                self.files(&mut step, vec![format!("files:{root}"), place.to_owned()]);
            }
            _ => {
                self.files(&mut step, vec![format!("files:{directory}")]);
                step.route.set("rewrite", "/");
                let text = "a missing file gets 404: the application is not asked for it";
                draft.notes.left_out(&option.place, "static-map, for missing files", text);
            }
        }
        self.steps.push(step);
        true
    }

    fn map2(&mut self, option: &UwsgiOption, place: &str) -> bool {
        let Some((mount, directory)) = option.value.split_once('=') else { return false };
        let Some(path) = PathPattern::below(mount) else { return false };
        let directory = directory.trim_end_matches('/');
        let mut step = Step::new(vec![path], option.place.to_string());
        self.files(&mut step, vec![format!("files:{directory}"), place.to_owned()]);
        self.steps.push(step);
        true
    }

    /// Sends the paths with an extension to the application only, so that no source is shown.
    fn skip(&mut self, option: &UwsgiOption, place: &str) -> bool {
        let Some(path) = PathPattern::ending("/", &option.value) else { return false };
        let mut step = Step::new(vec![path], option.place.to_string());
        step.route.set("try", vec![place.to_owned()]);
        self.skipped.push(step);
        true
    }

    /// Returns the steps, with the application for all other paths.
    pub(crate) fn into_steps(self, place: &str, comment: String) -> Vec<Step> {
        let mut last = Step::new(vec![PathPattern::everything()], comment);
        let mut places: Vec<_> = self.checked.iter().map(|d| format!("files:{d}")).collect();
        let has_files = !places.is_empty();
        places.push(place.to_owned());
        if has_files {
            self.files(&mut last, places);
        } else {
            last.route.set("try", places);
        }
        let Self { mut steps, skipped, index, .. } = self;
        // An index that is named behind the directories is for them, too.
        for step in &mut steps {
            step.route.set("index", Value::Array(index.clone()));
        }
        // Of two directories of a path the deeper one counts.
        steps.sort_by_key(|step| {
            let length = step.paths.first().map_or(0, |path| path.start().len());
            std::cmp::Reverse(length)
        });
        skipped.into_iter().chain(steps).chain([last]).collect()
    }
}
