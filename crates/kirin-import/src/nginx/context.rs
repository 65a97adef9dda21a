//! What is known of a server while its locations are read.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

use super::copies::OpenPath;
use super::directive::Directive;
use super::globals::Globals;
use super::location::Location;
use super::output::Output;
use super::scope::Scope;
use super::server::Server;
use super::variables::Variables;

/// What is known of a server while its locations are read.
#[derive(Debug)]
pub struct Context<'a> {
    /// The definitions of the configuration.
    pub globals: &'a Globals<'a>,
    /// The sections outside of sites.
    pub output: &'a Output,
    /// The server.
    pub server: &'a Server<'a>,
    /// The locations `@name`.
    pub named: HashMap<&'a str, Location<'a>>,
    /// The location that runs PHP scripts, if there is one.
    pub php: Option<Location<'a>>,
    /// The paths that `error_page` names.
    pub error_pages: HashSet<&'a str>,
    /// The locations that are compared by a path, by this path.
    pub by_path: HashMap<&'a str, Location<'a>>,
    /// The paths that `auth_request` asks.
    pub asked: HashSet<&'a str>,
    /// The paths that servers may name in `X-Accel-Redirect`, and their directories.
    pub accel_redirects: RefCell<Vec<(String, String)>>,
    /// The paths whose routes could come before those of an expression. They are not complete if
    /// there are very many.
    pub open_paths: Vec<OpenPath>,
    /// Why all routes of the site must refuse everybody, and the directive that it is about.
    pub closed_site: RefCell<Option<(&'a Directive, String)>>,
    /// Whether a location of the server asks for passwords or addresses.
    pub protects_some: bool,
}

impl<'a> Context<'a> {
    /// Returns the variables that are known in a block: those of `set`, and the host.
    pub fn variables(&self, scope: &Scope<'a>) -> Variables {
        let mut variables = Variables::default();
        for directive in scope.of_all_levels("set") {
            let name = directive.arg(0).trim_start_matches('$').to_owned();
            variables.set.entry(name).or_insert_with(|| directive.arg(1).to_owned());
        }
        if let Some(host) = self.server.plain_host() {
            variables.known.insert("server_name".into(), host.to_owned());
        }
        let mut ports = self.server.listens.iter().filter_map(|listen| listen.port);
        if let (Some(port), None) = (ports.next(), ports.next()) {
            variables.known.insert("server_port".into(), port.to_string());
        }
        variables
    }

    /// Notes that a directive was carried over.
    pub fn carried(&self, directive: &Directive) {
        self.globals.notes.carried(directive, "");
    }

    /// Notes that a directive was carried over, and what differs.
    pub fn carried_but(&self, directive: &Directive, text: impl Into<String>) {
        self.globals.notes.carried(directive, text);
    }

    /// Notes that Kirin does it without being told.
    pub fn by_itself(&self, directive: &Directive, text: impl Into<String>) {
        self.globals.notes.by_itself(directive, text);
    }

    /// Notes that a directive was left out.
    pub fn left_out(&self, directive: &Directive, text: impl Into<String>) {
        self.globals.notes.left_out(directive, text);
    }
}
