//! The places in `try` of a route.

use std::path::PathBuf;

use kirin_gateway::places::kind::{Arguments, PlaceConfig, PlaceKind};
use kirin_gateway::places::registry::PLACE_KINDS;

use crate::source::{ConfigError, ConfigSource};
use crate::suggestion::did_you_mean;
use crate::written::Written;

/// The apps and upstreams that places can name, in the order of the file.
pub struct Named<'a> {
    /// The names of the apps.
    pub apps: Vec<&'a str>,
    /// The names of the upstreams.
    pub upstreams: Vec<&'a str>,
}

/// Finds what the arguments of places name.
struct NamedIn<'a>(&'a Named<'a>, &'a ConfigSource);

/// Returns the place that `place` names.
pub fn check_place(
    place: &Written<String>,
    named: &Named<'_>,
    source: &ConfigSource,
) -> Result<PlaceConfig, ConfigError> {
    let (name, argument) = match place.split_once(':') {
        Some((name, argument)) => (name, Some(argument)),
        None => (place.as_str(), None),
    };
    let is_kind = |kind: &&&'static PlaceKind| {
        kind.name == name && kind.argument.is_some() == argument.is_some()
    };
    let found = PLACE_KINDS.iter().find(is_kind).ok_or_else(|| {
        format!("`{}` is not a place; allowed are {}", place.as_str(), forms("and", |_| true))
    });
    let argument = argument.unwrap_or_default();
    found
        .and_then(|kind| PlaceConfig::read(kind, argument, &NamedIn(named, source)))
        .map_err(|message| source.error(place.span(), message))
}

/// Returns the index of an upstream. The error is a message for the user.
pub fn find_upstream(name: &str, named: &Named<'_>) -> Result<usize, String> {
    find("upstream", name, &named.upstreams)
}

/// Lists the forms of the kinds that are `wanted`, with `conjunction` before the last.
pub fn forms(conjunction: &str, wanted: impl Fn(&PlaceKind) -> bool) -> String {
    let mut forms: Vec<String> =
        PLACE_KINDS.iter().filter(|kind| wanted(kind)).map(|kind| kind.form()).collect();
    match (forms.pop(), forms.is_empty()) {
        (Some(only), true) => only,
        (Some(last), false) => format!("{} {conjunction} {last}", forms.join(", ")),
        (None, _) => String::new(),
    }
}

impl Arguments for NamedIn<'_> {
    fn directory(&self, path: &str) -> Result<PathBuf, String> {
        self.1.directory_at(path)
    }

    fn file(&self, path: &str) -> Result<PathBuf, String> {
        let path = self.1.path(path);
        if path.is_file() { Ok(path) } else { Err(format!("there is no file {}", path.display())) }
    }

    fn app(&self, name: &str) -> Result<usize, String> {
        find("app", name, &self.0.apps)
    }

    fn upstream(&self, name: &str) -> Result<usize, String> {
        find_upstream(name, self.0)
    }
}

/// Returns the index of the app or upstream `name` among `names`.
fn find(kind: &str, name: &str, names: &[&str]) -> Result<usize, String> {
    names.iter().position(|other| *other == name).ok_or_else(|| {
        let known =
            if names.is_empty() { format!("there is no [[{kind}]]") } else { names.join(", ") };
        let meant = did_you_mean(name, names.iter().copied());
        format!("there is no {kind} `{name}`; {kind}s: {known}{meant}")
    })
}
