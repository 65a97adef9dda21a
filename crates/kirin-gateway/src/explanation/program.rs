//! The CGI program that a place would start for a request.

use std::path::PathBuf;

use crate::places::cgi::{self, ProgramSource};
use crate::places::kind::PlaceConfig;
use crate::routing::settings::RouteConfig;
use crate::routing::variables::RequestValues;

/// Returns the file of the program that a path names, with `SCRIPT_NAME` and the percent-encoded
/// `PATH_INFO`.
pub(super) fn program_of(
    route: &RouteConfig,
    place: &PlaceConfig,
    request: &RequestValues<'_>,
) -> Option<(PathBuf, (String, String))> {
    let (script_name, path_info) = match &route.rules.rewrite {
        Some(rewrite) => rewrite.mount(request, &route.path),
        None => cgi::mount(request.path, &route.path),
    };
    let path = place.path()?;
    let source = match place.answers_all() {
        true => ProgramSource::Program(path.to_owned()),
        false => ProgramSource::directory(path, route.follow_links).ok()?,
    };
    let program = source.find(script_name, &path_info)?;
    let script_name = String::from_utf8_lossy(&program.script_name).into_owned();
    Some((program.file, (script_name, program.path_info.to_owned())))
}
