//! A block `server`: its addresses and hosts.

use super::directive::Directive;
use super::globals::Globals;
use super::listen::Listen;
use super::scope::Scope;

/// A block `server`.
#[derive(Debug)]
pub struct Server<'a> {
    /// The block.
    pub directive: &'a Directive,
    /// What holds in it.
    pub scope: Scope<'a>,
    /// Its addresses.
    pub listens: Vec<Listen<'a>>,
    /// Its hosts, as Kirin writes them. Empty if it has none.
    pub hosts: Vec<String>,
    /// Whether it has the name `_`, an empty one or none.
    pub is_nameless: bool,
    /// Whether its listeners send Strict-Transport-Security.
    pub has_listener_hsts: bool,
}

impl<'a> Server<'a> {
    /// Reads a block.
    pub fn read(directive: &'a Directive, globals: &Globals<'a>) -> Self {
        let scope = globals.http.inner(directive.inside());
        let mut listens = listens(&scope, globals);
        if scope.is_on("ssl") {
            for listen in &mut listens {
                listen.is_tls = true;
            }
        }
        let (hosts, is_nameless) = hosts(&scope, globals);
        Self { directive, scope, listens, hosts, is_nameless, has_listener_hsts: false }
    }

    /// Returns whether it is the server for unknown hosts of one of its addresses.
    pub fn is_default(&self) -> bool {
        self.listens.iter().any(|listen| listen.is_default)
    }

    /// Returns whether clients reach it with TLS, and without.
    pub fn schemes(&self) -> (bool, bool) {
        let has = |is_tls| self.listens.iter().any(|listen| listen.is_tls == is_tls);
        (has(true), has(false))
    }

    /// Returns its first host that is a plain name.
    pub fn plain_host(&self) -> Option<&str> {
        self.hosts.iter().map(String::as_str).find(|host| !host.contains(['*', '~']))
    }
}

fn listens<'a>(scope: &Scope<'a>, globals: &Globals<'a>) -> Vec<Listen<'a>> {
    let mut listens: Vec<Listen<'_>> = Vec::new();
    for directive in scope.own_named("listen").iter().copied() {
        if directive.has("quic") {
            globals.notes.by_itself(directive, "a listener with `tls` has HTTP/3");
            continue;
        }
        match Listen::read(directive) {
            Some(listen) => {
                globals.notes.carried(directive, "");
                listens.push(listen);
            }
            None => {
                let text = "write the address into a [[listener]]: HOST:PORT with an IP address, \
                            *:PORT or unix:PATH";
                globals.notes.left_out(directive, text);
            }
        }
    }
    if scope.own_named("listen").is_empty() {
        listens.push(Listen::implied());
    }
    listens
}

/// Returns the hosts, and whether there is a name that no request can have, or none.
fn hosts<'a>(scope: &Scope<'a>, globals: &Globals<'a>) -> (Vec<String>, bool) {
    let mut hosts = Vec::new();
    let mut is_nameless = true;
    for directive in scope.own_named("server_name") {
        for name in &directive.args {
            match host(name) {
                Names::None => {}
                Names::Hosts(more) => {
                    is_nameless = false;
                    hosts.extend(
                        more.into_iter().filter(|host| !hosts.contains(host)).collect::<Vec<_>>(),
                    );
                }
                Names::Unknown(why) => {
                    is_nameless = false;
                    globals.notes.left_out(directive, format!("the name `{name}`: {why}"));
                }
            }
        }
        globals.notes.carried(directive, "");
    }
    (hosts, is_nameless)
}

/// What a name of `server_name` stands for.
enum Names {
    /// No host of a request.
    None,
    /// These hosts.
    Hosts(Vec<String>),
    /// A name that cannot be carried over, and why.
    Unknown(&'static str),
}

fn host(name: &str) -> Names {
    if matches!(name, "" | "_" | "--" | "!@#" | "$hostname") || name.starts_with('_') {
        return Names::None;
    }
    if let Some(expression) = name.strip_prefix('~') {
        if expression.contains("(?=") || expression.contains("(?!") || expression.contains("(?<!") {
            return Names::Unknown("regular expressions of Kirin have no look-around");
        }
        return Names::Hosts(vec![name.to_owned()]);
    }
    let name = name.to_lowercase();
    if let Some(rest) = name.strip_prefix('.') {
        return Names::Hosts(vec![rest.to_owned(), format!("*.{rest}")]);
    }
    let inner = name.strip_prefix("*.").or(name.strip_suffix(".*")).unwrap_or(&name);
    let is_host = |c: char| c.is_alphanumeric() || "-._[]:".contains(c);
    match !inner.is_empty() && inner.chars().all(is_host) {
        true => Names::Hosts(vec![name]),
        false => Names::Unknown("it is not the name of a host"),
    }
}
