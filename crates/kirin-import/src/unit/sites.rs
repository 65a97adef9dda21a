//! The sites of Kirin: the routes that listeners pass to, by their hosts.

use std::collections::HashMap;

use toml::Value;

use crate::draft::Draft;
use crate::error::ImportError;
use crate::report::{Outcome, Place};
use crate::steps::{Scope, Step, sites};
use crate::unit::json::{Entry, Json, Node};
use crate::unit::routes::StepReader;
use crate::unit::settings::RouteSettings;
use crate::unit::targets::Targets;

/// Reads the routes that the listeners pass to, and adds their sites.
///
/// # Errors
/// Returns an error if there are too many steps.
pub(crate) fn add_sites(
    config: &Node,
    served: &Served,
    file: &str,
    draft: &mut Draft,
    targets: &mut Targets,
    settings: &RouteSettings,
) -> Result<(), ImportError> {
    let routes = config.get("routes");
    let listeners = config.get("listeners").map(Node::entries).unwrap_or_default();
    redirects(listeners, served, file, draft);
    other_listeners(listeners, served, file, draft);
    let mut reader = StepReader {
        file,
        routes,
        draft,
        targets,
        steps: Vec::new(),
        open: Vec::new(),
        read: Vec::new(),
    };
    if let Some((pass, line)) = &served.pass {
        let place = Place { file: file.to_owned(), line: *line };
        reader.pass(pass, &place, &Scope::default())?;
    }
    unused(routes, served, &mut reader);
    let mut steps = reader.steps;
    steps.iter_mut().for_each(|step| apply_settings(&mut step.step, settings));
    let place = Place { file: file.to_owned(), line: 1 };
    draft.sites = sites(steps, &place)?;
    Ok(())
}

/// The listeners and what they pass to.
#[derive(Debug, Default)]
pub(crate) struct Served {
    /// What most clients get, and the line of the listener.
    pass: Option<(String, usize)>,
    /// The addresses whose routes do nothing but redirect to https, with the name of the routes.
    redirecting: HashMap<String, String>,
}

impl Served {
    /// Returns whether a listener is one of Kirin's.
    pub(crate) fn keeps(&self, entry: &Entry) -> bool {
        let pass = entry.node.get("pass").and_then(Node::text);
        let main = self.pass.as_ref().map(|(pass, _)| pass.as_str());
        self.redirecting.contains_key(&entry.key) || (pass.is_some() && pass == main)
    }
}

/// Returns which routes are served. All listeners of Kirin serve the same.
pub(crate) fn served(listeners: &[Entry], routes: Option<&Node>) -> Served {
    let mut served = Served::default();
    let has_tls = |entry: &Entry| entry.node.get("tls").is_some();
    let any_tls = listeners.iter().any(has_tls);
    for entry in listeners {
        let Some(pass) = entry.node.get("pass").and_then(Node::text) else { continue };
        if any_tls && !has_tls(entry) && only_redirects(pass, routes) {
            served.redirecting.insert(entry.key.clone(), pass.to_owned());
        } else if served.pass.is_none() {
            served.pass = Some((pass.to_owned(), entry.line));
        }
    }
    served
}

/// Returns whether routes do nothing but redirect every request to https.
fn only_redirects(pass: &str, routes: Option<&Node>) -> bool {
    let list = match pass.strip_prefix("routes/") {
        Some(name) => routes.and_then(|routes| routes.get(name)),
        None if pass == "routes" => routes,
        None => None,
    };
    let Some(Json::List(list)) = list.map(|node| &node.value) else { return false };
    let [step] = list.as_slice() else { return false };
    let location = step.get("action").and_then(|action| action.get("location"));
    step.get("match").is_none()
        && location.and_then(Node::text).is_some_and(|to| {
            matches!(
                to,
                "https://$host$request_uri"
                    | "https://${host}${request_uri}"
                    | "https://$host$uri"
                    | "https://${host}${uri}"
            )
        })
}

fn redirects(listeners: &[Entry], served: &Served, file: &str, draft: &mut Draft) {
    let tls = listeners.iter().find(|entry| entry.node.get("tls").is_some());
    let port = tls.and_then(|entry| entry.key.rsplit_once(':')?.1.parse::<u16>().ok());
    for entry in listeners.iter().filter(|entry| served.redirecting.contains_key(&entry.key)) {
        let place = Place { file: file.to_owned(), line: entry.line };
        let port = i64::from(port.unwrap_or(443));
        draft.listener(&entry.key).section.set("redirect_to_https", port);
        draft.notes.carried(&place, "\"pass\"", "`redirect_to_https` of the listener, with 308.");
    }
}

/// Leaves out the listeners that pass to something else than the others.
fn other_listeners(listeners: &[Entry], served: &Served, file: &str, draft: &mut Draft) {
    for entry in listeners {
        let place = Place { file: file.to_owned(), line: entry.line };
        if served.redirecting.contains_key(&entry.key) {
            continue;
        }
        if served.keeps(entry) {
            draft.notes.carried(&place, "\"pass\"", "");
            continue;
        }
        let text = "every listener of Kirin serves all routes, so a listener with routes of its \
                    own would show them to all clients. Write a second kirin.toml for it";
        draft.notes.left_out(&place, &format!("\"{}\"", entry.key), text);
    }
}

fn unused(routes: Option<&Node>, served: &Served, reader: &mut StepReader) {
    for entry in routes.map(Node::entries).unwrap_or_default() {
        let name = format!("routes/{}", entry.key);
        if reader.read.contains(&name) || served.redirecting.values().any(|pass| *pass == name) {
            continue;
        }
        let place = Place { file: reader.file.to_owned(), line: entry.line };
        let text = "no listener that was carried over passes to these routes";
        reader.remark(&place, &format!("\"{}\"", entry.key), Outcome::LeftOut(text.to_owned()));
    }
}

/// Adds what the settings say to a route.
fn apply_settings(step: &mut Step, settings: &RouteSettings) {
    let places = step.route.get("try").and_then(Value::as_array);
    let starts = |prefix: &str| {
        let mut texts = places.into_iter().flatten().filter_map(Value::as_str);
        texts.any(|place| place.starts_with(prefix))
    };
    let (files, programs) = (starts("files:"), starts("app:") || starts("proxy:"));
    if files && !settings.mime_types.is_empty() {
        step.route.set("mime_types", settings.mime_types.clone());
    }
    if let Some(limit) = settings.body_limit.as_ref().filter(|_| programs) {
        step.route.set("body_limit", limit.as_str());
    }
}
