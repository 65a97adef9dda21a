//! What the blocks of `http` define for all servers: upstreams, maps, zones and formats.

use std::collections::HashMap;

use super::directive::Directive;
use super::include::Tree;
use super::notes::Notes;
use super::scope::Scope;

/// The definitions of a configuration.
#[derive(Debug)]
pub struct Globals<'a> {
    /// The directives outside of `http`.
    pub main: &'a [Directive],
    /// The scope of `http`.
    pub http: Scope<'a>,
    /// The blocks `server` of `http`.
    pub servers: Vec<&'a Directive>,
    /// The notes on all directives.
    pub notes: &'a Notes,
    /// The directory of the first file with a slash at its end, or nothing.
    pub directory: &'a str,
    /// Whether an upstream speaks FastCGI. Then no file is a script.
    pub has_scripts: bool,
    named: HashMap<(&'static str, &'a str), &'a Directive>,
}

/// The directives that define something, and the number of the word that is its name. `KEY=` stands
/// for the option with that key.
const DEFINITIONS: [(&str, &str); 11] = [
    ("upstream", "0"),
    ("map", "1"),
    ("split_clients", "1"),
    ("log_format", "0"),
    ("limit_req_zone", "zone"),
    ("limit_conn_zone", "zone"),
    ("proxy_cache_path", "keys_zone"),
    ("fastcgi_cache_path", "keys_zone"),
    ("uwsgi_cache_path", "keys_zone"),
    ("scgi_cache_path", "keys_zone"),
    ("geo", "last"),
];

impl<'a> Globals<'a> {
    /// Returns the definitions of `tree`.
    pub fn new(tree: &'a Tree, notes: &'a Notes) -> Self {
        let (main, http) = main_and_http(&tree.directives);
        let mut named = HashMap::new();
        for (kind, key) in DEFINITIONS {
            for directive in http.own_named(kind) {
                let name = match key {
                    "0" => directive.arg(0),
                    "1" => directive.arg(1),
                    "last" => directive.args.last().map_or("", String::as_str),
                    key => zone_name(directive.option(key).unwrap_or_default()),
                };
                named.insert((kind, name.trim_start_matches('$')), *directive);
            }
        }
        let servers = http.own_named("server").to_vec();
        let has_scripts = has_fastcgi(&tree.directives);
        Self { main, http, servers, notes, directory: &tree.directory, has_scripts, named }
    }

    /// Returns the definition of this kind with this name, which has no `$`.
    pub fn named(&self, kind: &'static str, name: &str) -> Option<&'a Directive> {
        self.named.get(&(kind, name)).copied()
    }

    /// Returns the block `upstream` with this name.
    pub fn named_upstream(&self, name: &str) -> Option<&'a Directive> {
        self.named.get(&("upstream", name)).copied()
    }

    /// Returns a path as Kirin reads it. nginx takes relative paths of some directives as relative
    /// to the directory of its configuration.
    pub fn configuration_path(&self, path: &str) -> String {
        match path.starts_with('/') {
            true => path.to_owned(),
            false => format!("{}{path}", self.directory),
        }
    }
}

/// Returns whether a block has `fastcgi_pass` of another program than fcgiwrap. Blocks are only
/// some levels deep.
fn has_fastcgi(directives: &[Directive]) -> bool {
    directives.iter().any(|directive| {
        let is_one = directive.name == "fastcgi_pass" && !directive.arg(0).contains("fcgiwrap");
        is_one || has_fastcgi(directive.inside())
    })
}

/// Returns the name in `NAME:SIZE`.
pub fn zone_name(option: &str) -> &str {
    option.split(':').next().unwrap_or_default()
}

/// Returns the directives outside of `http` and its content. A file of `sites-enabled` alone has
/// only what stands in `http`.
fn main_and_http(all: &[Directive]) -> (&[Directive], Scope<'_>) {
    match all.iter().find(|directive| directive.name == "http") {
        Some(http) => (all, Scope::new(http.inside())),
        None => (&[], Scope::new(all)),
    }
}
