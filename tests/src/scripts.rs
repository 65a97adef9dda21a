//! Sites of one script or more, for tests of `lua:FILE`.

use crate::{Kirin, Memcached, Site};

/// One event loop and a store.
pub const CONFIG: &str = "threads = 1\n[[listener]]\naddress = \"127.0.0.1:0\"\naccess_log = \"access.log\"\n\
    [store]\nmemory = \"16MB\"\nmemcached = [\"unix:m.sock\"]\n";

/// Times that a busy machine takes for a slow script must not be taken for one.
pub const PATIENT: &str = "[lua]\ntime_limit = \"20s\"\n";

/// Starts with routes and more behind [`CONFIG`].
pub fn serve(site: &Site, rest: &str) -> Kirin {
    Kirin::start(site, &format!("{CONFIG}{rest}"))
}

/// One script for the whole site.
pub fn serve_script(script: &str) -> (Site, Kirin) {
    let site = Site::new().with("page.lua", script);
    let kirin =
        serve(&site, &format!("{PATIENT}[[route]]\npath = \"/\"\ntry = [\"lua:page.lua\"]\n"));
    (site, kirin)
}

/// A script whose function has this body.
pub fn handler(body: &str) -> String {
    format!("return function(request)\n{body}\nend\n")
}

/// A connection to its store.
pub fn memcached(site: &Site) -> Memcached {
    Memcached::connect(&site.path("m.sock"))
}
