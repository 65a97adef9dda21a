//! nginx configurations.
//!
//! [`import`] parses the files ([`parser`], [`include`]), reads what they define for all servers
//! ([`globals`]), and writes listeners, upstreams and sites. Each directive gets a note
//! ([`notes`]).

mod access_rules;
mod base_route;
mod by_itself;
mod cache;
mod conditions;
mod content;
mod context;
mod copies;
mod directive;
mod error_pages;
mod expression;
mod expression_routes;
mod fastcgi;
mod files;
mod fixed_answer;
mod form_builder;
mod globals;
mod hoist;
mod host_blocks;
mod https_redirects;
mod if_blocks;
mod include;
mod lexer;
mod limit_except;
mod limits;
mod listen;
mod listeners;
mod location;
mod logs;
mod narrow_addresses;
mod network;
mod notes;
mod output;
mod parser;
mod passwords;
mod paths;
mod process;
mod programs;
mod protection;
mod redirect_maps;
mod redirects;
mod referers;
mod remaining;
mod request_fields;
mod response_fields;
mod route;
mod scope;
mod section_order;
mod server;
mod site_routes;
mod sites;
mod text_patterns;
mod tls;
mod try_files;
mod units;
mod unsupported;
mod upstream;
mod upstream_block;
mod variables;

use crate::files::Files;
use crate::report::Import;
use crate::section::Section;

pub use parser::SyntaxError;

use globals::Globals;
use https_redirects::HttpsRedirects;
use notes::Notes;
use output::Output;
use server::Server;

/// What the `kirin.toml` says before everything else.
const PREFACE: [&str; 6] = [
    "Written by `kirin import` from an nginx configuration. Read it before you use it: the report of",
    "the command has a line on each directive, and says what is different.",
    "nginx refuses bodies above 1 MB unless it is told otherwise; `body_limit` is that limit.",
    "Servers get X-Forwarded-For, -Proto and -Host, which nginx sends only if it is told to.",
    "nginx follows symbolic links out of a directory; Kirin does with `follow_links` only.",
    "A prefix of nginx is a path with whole segments here: /api is not /apis.",
];

/// Imports the configuration `file` with everything that it includes. It may be a complete one, or
/// a file of `sites-enabled` alone. An error is that the text is not a configuration.
pub fn import(file: &str, files: &dyn Files) -> Result<Import, SyntaxError> {
    let notes = Notes::default();
    let mut tree = include::read_tree(file, files, &notes)?;
    wrap_locations(&mut tree, &notes);
    let output = Output::default();
    let sections = sections(&tree, &output, &notes);
    Ok(Import { sections, notes: notes.finish(), files: output.take_files() })
}

/// Puts locations that stand outside of a server into one.
fn wrap_locations(tree: &mut include::Tree, notes: &Notes) {
    let has = |name: &str| tree.directives.iter().any(|directive| directive.name == name);
    if has("http") || has("server") || !has("location") {
        return;
    }
    let Some(first) = tree.directives.first() else { return };
    let mut server = directive::Directive {
        number: 0,
        name: "server".into(),
        args: Vec::new(),
        block: None,
        foreign: None,
        file: first.file.clone(),
        line: first.line,
    };
    server.number = notes.len();
    server.block = Some(std::mem::take(&mut tree.directives));
    tree.directives.push(server);
}

/// Returns the sections of a configuration.
fn sections(tree: &include::Tree, output: &Output, notes: &Notes) -> Vec<Section> {
    let globals = Globals::new(tree, notes);
    let mut servers: Vec<Server<'_>> =
        globals.servers.iter().map(|directive| Server::read(directive, &globals)).collect();
    listeners::join_families(&mut servers);
    tls::find_common_hsts(&mut servers);
    process::add_process(&globals, output);
    let redirects = HttpsRedirects::find(&servers, &globals);
    let listeners = listeners::listeners(&servers, &globals, &redirects);
    let sites = sites::sites(&servers, &globals, output, &redirects);
    let sites = if sites.is_empty() { vec![nothing()] } else { sites };
    let mut all = Vec::new();
    let mut top = output.top.take();
    for line in PREFACE {
        top.comment(line);
    }
    all.push(top);
    all.extend(listeners);
    let mut store = output.store.take();
    if !store.keys.is_empty() {
        store.header = "[store]".into();
        all.push(store);
    }
    all.extend(process::open_file_cache(&globals));
    for mut upstream in output.take_upstreams() {
        section_order::sort_keys(&mut upstream);
        all.push(upstream);
    }
    all.extend(sites);
    remaining::note_remaining(&tree.directives, notes);
    all
}

/// Returns the route of a configuration that serves nothing, because Kirin needs one.
fn nothing() -> Section {
    let mut section = Section::new("[[route]]");
    section.comment("No server of the nginx configuration has content.");
    section.set("path", "/");
    section.set("deny", 404);
    section
}

#[cfg(test)]
#[path = "tests/mod.rs"]
mod tests;
