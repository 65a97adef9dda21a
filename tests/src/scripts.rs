//! Sites with scripts, for tests of `lua:FILE`.

use crate::{Kirin, Memcached, Site};

/// A configuration with one event loop and a store.
pub const CONFIG: &str = "threads = 1\n[[listener]]\naddress = \"127.0.0.1:0\"\naccess_log = \"access.log\"\n\
    [store]\nmemory = \"16MB\"\nmemcached = [\"unix:m.sock\"]\n";

/// A configuration with long time limits, so that a busy machine does not make a script fail.
pub const PATIENT: &str = "[lua]\ntime_limit = \"20s\"\n";

/// Starts Kirin with routes and more keys behind [`CONFIG`].
pub fn serve(site: &Site, rest: &str) -> Kirin {
    Kirin::start(site, &format!("{CONFIG}{rest}"))
}

/// Starts Kirin with one script for the complete site.
pub fn serve_script(script: &str) -> (Site, Kirin) {
    let site = Site::new().with("page.lua", script);
    let kirin =
        serve(&site, &format!("{PATIENT}[[route]]\npath = \"/\"\ntry = [\"lua:page.lua\"]\n"));
    (site, kirin)
}

/// Returns a script whose function has this body.
pub fn handler(body: &str) -> String {
    format!("return function(request)\n{body}\nend\n")
}

/// Connects to its store.
pub fn memcached(site: &Site) -> Memcached {
    Memcached::connect(&site.path("m.sock"))
}
