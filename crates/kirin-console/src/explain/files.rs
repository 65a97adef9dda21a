//! What the directory of a `files:` place answers now.

use std::path::Path;
use std::rc::Rc;
use std::time::Instant;

use kirin_compress::Codings;
use kirin_files::{FileCache, Files, FilesConfig};
use kirin_gateway::places::files::{is_exact, point_to_sent_path, settings};
use kirin_gateway::places::hidden_scripts::HiddenScripts;
use kirin_gateway::routing::settings::{GatewayConfig, RouteConfig};
use kirin_http::{RequestHead, RequestPath};

/// Returns what the place answers to a request, in words. `rewritten` is `head` with the path that
/// the place sees. The place is asked as the server asks it, so that links, index pages and
/// listings count.
pub fn answer(
    directory: &Path,
    route: &RouteConfig,
    config: &GatewayConfig,
    head: &RequestHead<'_>,
    rewritten: &RequestHead<'_>,
) -> String {
    let hidden = HiddenScripts::new(&config.script_extensions);
    // Nothing is compressed for an explanation.
    let settings = FilesConfig { compress: Codings::NONE, ..settings(directory, route, &hidden) };
    let files = match Files::open(settings, &Rc::new(FileCache::new(config.open_file_cache))) {
        Ok(files) => files,
        Err(error) => return error.to_string(),
    };
    let Some(mut response) = files.answer(rewritten, Instant::now()) else {
        return "not there".into();
    };
    if route.rules.rewrite.is_some()
        && let Ok(sent) = RequestPath::parse(head.path)
    {
        point_to_sent_path(&mut response, rewritten, &sent, is_exact(route));
    }
    let field = |name| response.fields.get(name).map(String::from_utf8_lossy);
    let status = response.status.as_u16();
    match (field("location"), field("content-type")) {
        (Some(location), _) => format!("{status} to {location}"),
        (None, Some(media_type)) => format!("{status}, {media_type}"),
        (None, None) => status.to_string(),
    }
}
