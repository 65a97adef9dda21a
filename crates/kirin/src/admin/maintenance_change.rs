//! The maintenance of sites and routes, as operators begin and end it.

use kirin_config::{NetworkError, Seconds, parse_network};
use kirin_gateway::routing::access::Maintenance;
use kirin_gateway::routing::error_page::check_path;
use kirin_gateway::routing::operator_maintenance::{HeldRoutes, OperatorMaintenance};
use kirin_gateway::routing::route_names::RouteNames;
use kirin_gateway::routing::site_names::SiteNames;
use kirin_http::PeerSet;
use serde::Deserialize;

use crate::admin::unknown_name::UnknownName;

/// The value of `Retry-After`, if the operator gives none. It is that of `maintenance.retry_after`.
const RETRY_AFTER: Seconds = Seconds(600);

/// Begins or ends the maintenance of routes.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MaintenanceRequest {
    action: Action,
    /// The site: its name, or one of its hosts. Without one, all sites.
    site: Option<String>,
    /// The route: its paths, with or without its conditions. Without one, all routes.
    route: Option<String>,
    /// The path of the page that clients get.
    page: Option<String>,
    /// When clients may come again.
    retry_after: Option<Seconds>,
    /// The addresses and networks that are served, and `unix:`.
    #[serde(default)]
    allow: Vec<String>,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Action {
    On,
    Off,
}

impl MaintenanceRequest {
    /// Makes the change. Returns what was done, or a message for the operator.
    pub fn apply(
        self,
        operator: &OperatorMaintenance,
        sites: &SiteNames,
        names: &RouteNames,
    ) -> Result<String, String> {
        let site = self.site.as_deref().map(|site| sites.label(site)).transpose()?;
        let route = self.route.map(|route| as_named(route, names));
        let held = HeldRoutes { site: site.map(str::to_owned), route };
        let done = match self.action {
            Action::On => {
                let maintenance = Maintenance {
                    page: self.page,
                    retry_after_seconds: self.retry_after.unwrap_or(RETRY_AFTER).0,
                    except: peers(&self.allow).map_err(|error| format!("allow: {error}"))?,
                };
                if let Some(page) = &maintenance.page {
                    check_path(page).map_err(|message| format!("page {message}"))?;
                }
                if !operator.begin(held.clone(), maintenance, names) {
                    return Err(unknown_route(&held, names));
                }
                "is in maintenance: clients get 503"
            }
            Action::Off => {
                if self.page.is_some() || self.retry_after.is_some() || !self.allow.is_empty() {
                    return Err("`off` has no page, retry_after or allow".to_owned());
                }
                if !operator.end(&held, names) {
                    return Err(not_in_maintenance(&held, operator));
                }
                "is served again"
            }
        };
        tracing::info!("{held} {done}, by an operator");
        Ok(format!("{held} {done}\n"))
    }
}

/// Returns a route as its name has it. The configuration takes `/shop/` for `/shop`.
fn as_named(route: String, names: &RouteNames) -> String {
    let is_known = |route: &str| names.iter().any(|(_, name)| name.path == route);
    match route.strip_suffix('/') {
        Some(name) if !is_known(&route) && is_known(name) => name.to_owned(),
        _ => route,
    }
}

/// Reads addresses and networks, and `unix:`.
pub fn peers(list: &[String]) -> Result<PeerSet, NetworkError> {
    let is_unix = |written: &&String| *written == "unix:";
    let networks = list.iter().filter(|written| !is_unix(written));
    let networks = networks.map(|written| parse_network(written)).collect::<Result<Vec<_>, _>>()?;
    Ok(PeerSet::new(networks, list.iter().any(|written| is_unix(&written))))
}

fn unknown_route(held: &HeldRoutes, names: &RouteNames) -> String {
    let of_site = HeldRoutes { route: None, ..held.clone() };
    let mut known: Vec<&str> = names
        .iter()
        .filter(|(_, name)| of_site.has(name))
        .map(|(_, name)| name.route.as_str())
        .collect();
    known.sort_unstable();
    known.dedup();
    let wanted = held.route.as_deref().unwrap_or_default();
    UnknownName::new("route", wanted, known.into_iter()).to_string()
}

fn not_in_maintenance(held: &HeldRoutes, operator: &OperatorMaintenance) -> String {
    let others: Vec<String> = operator.list().iter().map(|(held, _)| held.to_string()).collect();
    let others = match others.as_slice() {
        [] => "nothing is".to_owned(),
        others => format!("there is {}", others.join("; ")),
    };
    format!(
        "no operator has put this in maintenance: {held} ({others}); `maintenance` of the \
         configuration ends when it is removed there and `kirin reload` is run"
    )
}
