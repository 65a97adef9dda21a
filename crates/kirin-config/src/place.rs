//! The places in `try` of a route.

use kirin_gateway::routing::settings::PlaceConfig;

use crate::source::{ConfigError, Source};
use crate::suggestion::did_you_mean;
use crate::written::Written;

/// The apps and upstreams that places can name, in the order of the file.
pub struct Named<'a> {
    /// The names of the apps.
    pub apps: Vec<&'a str>,
    /// The names of the upstreams.
    pub upstreams: Vec<&'a str>,
}

/// Returns the place that `place` names.
pub fn check_place(
    place: &Written<String>,
    named: &Named<'_>,
    source: &Source,
) -> Result<PlaceConfig, ConfigError> {
    match place.split_once(':') {
        None if place.as_str() == "store" => Ok(PlaceConfig::Store),
        Some(("files", directory)) => {
            let directory = Written::new(place.span(), directory.to_owned());
            source.existing_directory(&directory).map(PlaceConfig::Files)
        }
        Some(("lua", file)) => {
            let path = source.path(file);
            if !path.is_file() {
                let message = format!("there is no file {}", path.display());
                return Err(source.error(place.span(), message));
            }
            Ok(PlaceConfig::Lua(path))
        }
        Some(("app", name)) => find("app", name, &named.apps, place, source).map(PlaceConfig::App),
        Some(("proxy", name)) => {
            find("upstream", name, &named.upstreams, place, source).map(PlaceConfig::Proxy)
        }
        _ => {
            let message = format!(
                "`{}` is not a place; allowed are store, files:DIR, lua:FILE, app:NAME and \
                 proxy:NAME",
                place.as_str()
            );
            Err(source.error(place.span(), message))
        }
    }
}

/// Returns the number of the app or upstream `name` among `names`.
fn find(
    kind: &str,
    name: &str,
    names: &[&str],
    place: &Written<String>,
    source: &Source,
) -> Result<usize, ConfigError> {
    names.iter().position(|other| *other == name).ok_or_else(|| {
        let known =
            if names.is_empty() { format!("there is no [[{kind}]]") } else { names.join(", ") };
        let meant = did_you_mean(name, names.iter().copied());
        let message = format!("there is no {kind} `{name}`; {kind}s: {known}{meant}");
        source.error(place.span(), message)
    })
}
