//! A Caddyfile: the configuration of Caddy.

mod address;
mod body;
mod fields;
mod global;
mod listeners;
mod matchers;
mod middleware;
mod placeholders;
mod proxy;
mod site;
mod terminals;
#[cfg(test)]
mod tests;
mod tokens;
mod tree;

use std::collections::HashMap;

use toml::{Table, Value};

use crate::caddy::body::{Around, BodyReader};
use crate::caddy::global::Global;
use crate::caddy::listeners::{listeners, needs_client_certificates, serves_http};
use crate::caddy::site::CaddySite;
use crate::draft::Draft;
use crate::error::ImportError;
use crate::files::Files;
use crate::report::{Import, Place};
use crate::steps::{HostStep, PathPattern, Scope, Step, sites};

/// Imports a Caddyfile.
///
/// # Errors
/// Returns an error if a file cannot be read or is malformed.
pub fn import(file: &str, files: &dyn Files) -> Result<Import, ImportError> {
    let tree = tree::read(file, files)?;
    let mut draft = Draft::default();
    let mut blocks = tree.as_slice();
    let mut global = Global::default();
    if let Some((first, rest)) = blocks.split_first()
        && first.words.is_empty()
    {
        global = Global::read(first.inner(), &mut draft);
        blocks = rest;
    }
    let read =
        blocks.iter().map(|block| CaddySite::read(block, global.ports, &global.bind, &mut draft));
    let read: Vec<_> = read.collect();
    let kept = kept(read, &global, &mut draft);
    listeners(&kept, &global, &mut draft);
    let steps = steps(&kept, &global, &mut draft)?;
    let place = Place { file: file.to_owned(), line: 1 };
    draft.sites = sites(steps, &place)?;
    let mut import = draft.finish(&place)?;
    // Sites are read after the listeners, but a person reads the file from its start.
    import.notes.sort_by(|one, other| {
        (&one.place.file, one.place.line).cmp(&(&other.place.file, other.place.line))
    });
    Ok(import)
}

/// Leaves out the sites that only some listeners have, and hosts that two sites have.
fn kept<'a>(read: Vec<CaddySite<'a>>, global: &Global, draft: &mut Draft) -> Vec<CaddySite<'a>> {
    let mut kept: Vec<CaddySite> = Vec::new();
    let mut hosts: HashMap<(String, bool), ()> = HashMap::new();
    for mut site in read {
        let reach = kept.first().map(|first| first.reach(global.ports));
        if reach.is_some_and(|reach| reach != site.reach(global.ports)) {
            let text = "every listener of Kirin serves all sites, so a site with a port or \
                        address of its own would be shown to all clients. Write a second \
                        kirin.toml for it";
            draft.notes.left_out(&site.place, &site.line, text);
            continue;
        }
        site.addresses
            .retain(|address| hosts.insert((address.host.clone(), address.https), ()).is_none());
        if site.addresses.is_empty() {
            let text = "it has no address, or another site has it";
            draft.notes.left_out(&site.place, &site.line, text);
            continue;
        }
        draft.notes.carried(&site.place, &site.line, "");
        kept.push(site);
    }
    kept
}

/// Returns the steps of all sites.
fn steps(
    kept: &[CaddySite],
    global: &Global,
    draft: &mut Draft,
) -> Result<Vec<HostStep>, ImportError> {
    let redirects = !global.no_redirects && global.ports.automatic && serves_http(kept);
    let mut steps = Vec::new();
    // The routes for http have a condition, so they come first.
    let (http, https): (Vec<_>, Vec<_>) =
        kept.iter().partition(|site| scheme(site, kept) == Some("http"));
    for site in http.into_iter().chain(https) {
        let scheme = scheme(site, kept);
        let mut scope = Scope { hosts: site.hosts(), ..Scope::default() };
        if scheme == Some("http") {
            scope.conditions.insert("scheme".to_owned(), Value::from("http"));
        }
        let only_https = site.addresses.iter().all(|address| address.https);
        if redirects && only_https && scheme.is_none() && !scope.hosts.is_empty() {
            steps.push(to_https(site, &scope));
        }
        let effects = site.effects(draft);
        let mut reader = BodyReader { draft, steps: Vec::new() };
        let around = Around { scope: scope.clone(), effects, ..Around::default() };
        reader.body(site.body, &around)?;
        let mut own = reader.steps;
        if needs_client_certificates(site, kept.len() == 1) {
            let reason = "Closed: the site asked clients for certificates.";
            own.iter_mut().for_each(|step| step.step.close(reason));
        }
        if own.is_empty() || !scope.conditions.is_empty() {
            let mut step = Step::nothing(&site.place);
            step.conditions = scope.conditions;
            own.push(HostStep { hosts: scope.hosts, step });
        }
        steps.append(&mut own);
    }
    Ok(steps)
}

/// Returns the scheme that a site is for, if another one has a host of it for the other scheme.
fn scheme(site: &CaddySite, kept: &[CaddySite]) -> Option<&'static str> {
    let https = site.addresses.first()?.https;
    if site.addresses.iter().any(|address| address.https != https) {
        return None;
    }
    let shared = |other: &&CaddySite| {
        other.place != site.place
            && other.addresses.iter().any(|address| {
                address.https != https && site.addresses.iter().any(|own| own.host == address.host)
            })
    };
    kept.iter().find(shared)?;
    Some(if https { "https" } else { "http" })
}

/// Returns the step that leads a site from http to https.
fn to_https(site: &CaddySite, scope: &Scope) -> HostStep {
    let comment = format!("{}, for http", site.place);
    let mut step = Step::new(vec![PathPattern::everything()], comment);
    step.conditions = Table::from_iter([("scheme".to_owned(), Value::from("http"))]);
    step.route.set("redirect", "https://{host}{path}");
    HostStep { hosts: scope.hosts.clone(), step }
}
