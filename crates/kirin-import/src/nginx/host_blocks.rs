//! Blocks `if ($host …)` of a server: sites of their own.

use super::directive::Directive;
use super::globals::Globals;
use super::location::Location;
use super::output::Output;
use super::paths::Form;
use super::protection::refuses;
use super::redirects::{set_return_redirect, status_of};
use super::route::Route;
use super::server::Server;

/// What a block `if` does with hosts.
#[derive(Debug)]
pub enum HostBlock<'a> {
    /// This host is redirected.
    Redirects {
        /// The host, in lower case.
        host: String,
        /// Whether all hosts but this one are redirected.
        is_negated: bool,
        /// `return` or `rewrite`.
        answer: &'a Directive,
    },
    /// All hosts but those of the server are refused.
    RefusesOthers,
}

/// Reads a block. Returns `None` if it is not about hosts, or Kirin cannot have it.
pub fn host_block<'a>(block: &'a Directive, server: &Server<'a>) -> Option<HostBlock<'a>> {
    let joined = block.args.join(" ");
    let inner = joined.trim().trim_start_matches('(').trim_end_matches(')').trim();
    let (subject, rest) = inner.split_once(' ')?;
    if !matches!(subject, "$host" | "$http_host") {
        return None;
    }
    let (sign, host) = rest.trim().split_once(' ')?;
    let (host, is_negated) = (host.trim().to_lowercase(), sign.starts_with('!'));
    if block.inside().iter().any(refuses) {
        let has_names = !server.hosts.is_empty();
        return (is_negated && has_names).then_some(HostBlock::RefusesOthers);
    }
    let is_redirect = |directive: &&Directive| match directive.name.as_str() {
        "return" => directive.args.last().is_some_and(|target| target.contains("://")),
        "rewrite" => status_of(directive).is_some(),
        _ => false,
    };
    let answer = block.inside().iter().find(is_redirect)?;
    let host = match sign {
        "=" | "!=" => host,
        "~" | "~*" | "!~" | "!~*" => {
            let name = host.strip_prefix('^')?.strip_suffix('$')?.replace("\\.", ".");
            let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '.' || c == '-');
            is_name.then_some(name)?
        }
        _ => return None,
    };
    Some(HostBlock::Redirects { host, is_negated, answer })
}

/// Returns whether a server refuses hosts that are not its own.
pub fn refuses_others(server: &Server<'_>) -> bool {
    let blocks = server.scope.own_named("if").iter();
    blocks.copied().any(|block| matches!(host_block(block, server), Some(HostBlock::RefusesOthers)))
}

/// Splits a site by the blocks of its servers. Returns the hosts and routes of each part.
pub fn split_hosts<'a>(
    hosts: &[String],
    routes: Vec<Route>,
    of_site: &[&'a Server<'a>],
    globals: &'a Globals<'a>,
    output: &'a Output,
) -> Vec<(Vec<String>, Vec<Route>)> {
    let mut rest = hosts.to_vec();
    let mut parts = Vec::new();
    for server in of_site {
        for block in server.scope.own_named("if").iter().copied() {
            let Some(HostBlock::Redirects { host, is_negated, answer }) = host_block(block, server)
            else {
                continue;
            };
            let moved: Vec<String> =
                rest.iter().filter(|other| (**other == host) != is_negated).cloned().collect();
            if moved.is_empty() {
                globals.notes.by_itself(block, "no request of this site has such a host");
                continue;
            }
            match redirect(block, answer, server, globals, output) {
                Some(route) => {
                    rest.retain(|other| !moved.contains(other));
                    parts.push((moved, vec![route]));
                }
                None => globals.notes.left_out(block, "write a [[site]] with a `redirect`"),
            }
        }
    }
    if !rest.is_empty() {
        parts.insert(0, (rest, routes));
    }
    parts
}

/// Returns the route of a redirect to another host.
fn redirect<'a>(
    block: &'a Directive,
    answer: &'a Directive,
    server: &'a Server<'a>,
    globals: &'a Globals<'a>,
    output: &'a Output,
) -> Option<Route> {
    let context = super::site_routes::context(server, globals, output, &[]);
    let location = Location::of_server(block, &server.scope);
    let mut route = Route::new("/");
    if answer.name == "rewrite" {
        route = super::redirects::rewrite_redirects(answer, &location, &context).ok()?.pop()?;
    } else {
        let status = answer.arg(0).parse().unwrap_or(302);
        let target = answer.args.last()?;
        let variables = context.variables(&server.scope);
        set_return_redirect(
            &mut route,
            &Form::default(),
            status,
            target,
            &variables,
            &context,
            answer,
        )
        .ok()?;
    }
    route.section.comments = vec![block.at()];
    globals.notes.carried(block, "a site of its own");
    (route.path() == "/").then_some(route)
}
