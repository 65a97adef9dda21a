//! What operators have changed in the running program, for the program that takes over from it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kirin_config::parse_network;
use kirin_gateway::routing::access::Maintenance;
use kirin_gateway::routing::operator_maintenance::HeldRoutes;
use kirin_proxy::{OperatorState, ServerChange, ServerStatus, Upstream};
use kirin_server::{Block, network_name};
use serde::{Deserialize, Serialize};

use super::AdminParts;
use super::maintenance_change::peers;

/// A change that holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OperatorChange {
    /// Routes are in maintenance.
    Maintenance {
        /// The label of their site.
        site: Option<String>,
        /// The route.
        route: Option<String>,
        /// The page.
        page: Option<String>,
        /// The value of `Retry-After`.
        retry_after_seconds: u64,
        /// Who is served.
        allow: Vec<String>,
    },
    /// A network is blocked.
    Blocked {
        /// The network.
        network: String,
        /// For how long still.
        seconds: u64,
        /// Whether it is blocked on all machines with the same origin.
        #[serde(default)]
        on_all_machines: bool,
    },
    /// A server gets no requests, or only some.
    ServerState {
        /// Its upstream.
        upstream: String,
        /// Its name.
        server: String,
        /// Whether it gets none, and not only those of its visitors.
        is_disabled: bool,
    },
    /// A server has another weight.
    ServerWeight {
        /// Its upstream.
        upstream: String,
        /// Its name.
        server: String,
        /// The weight.
        weight: u32,
        /// That of the configuration.
        configured: u64,
    },
    /// An application has another number of workers.
    Workers {
        /// The application.
        app: String,
        /// The number.
        workers: usize,
        /// That of the configuration.
        configured: usize,
    },
}

/// Returns what operators have changed.
pub fn collect(parts: &AdminParts) -> Vec<OperatorChange> {
    let observed = &parts.observed;
    let mut changes = Vec::new();
    for (held, maintenance) in observed.maintenance.list() {
        changes.push(OperatorChange::Maintenance {
            site: held.site,
            route: held.route,
            page: maintenance.page.clone(),
            retry_after_seconds: maintenance.retry_after_seconds,
            allow: maintenance.except.names(),
        });
    }
    let now = Instant::now();
    let (own, shared) = (observed.blocked.list(now), observed.blocked.list_shared(now));
    for (blocks, on_all_machines) in [(own, false), (shared, true)] {
        changes.extend(blocks.into_iter().map(|block| OperatorChange::Blocked {
            network: network_name(block.network),
            seconds: block.end.saturating_duration_since(now).as_secs() + 1,
            on_all_machines,
        }));
    }
    for upstream in &observed.upstreams {
        let of_server = |server| changes_of_server(upstream.name(), server);
        changes.extend(upstream.server_status().into_iter().flat_map(of_server));
    }
    for app in &observed.apps {
        let (workers, configured) = app.wanted_workers();
        if workers != configured {
            changes.push(OperatorChange::Workers {
                app: app.name().to_owned(),
                workers,
                configured,
            });
        }
    }
    changes
}

fn changes_of_server(upstream: &str, server: ServerStatus) -> Vec<OperatorChange> {
    let (upstream, name) = (upstream.to_owned(), server.name);
    let mut changes = Vec::new();
    if let (Ok(weight), Some(configured)) = (u32::try_from(server.weight), server.configured_weight)
    {
        let (upstream, server) = (upstream.clone(), name.clone());
        changes.push(OperatorChange::ServerWeight { upstream, server, weight, configured });
    }
    if server.operator != OperatorState::Enabled {
        let is_disabled = server.operator == OperatorState::Disabled;
        changes.push(OperatorChange::ServerState { upstream, server: name, is_disabled });
    }
    changes
}

/// Makes the changes in this program, except where its configuration says something else about the
/// same thing.
pub fn apply(changes: Vec<OperatorChange>, parts: &AdminParts) {
    let now = Instant::now();
    let blocks_of = |wanted: bool| {
        changes.iter().filter_map(move |change| match change {
            OperatorChange::Blocked { network, seconds, on_all_machines }
                if *on_all_machines == wanted =>
            {
                let network = parse_network(network).ok()?;
                Some(Block { network, end: now + Duration::from_secs(*seconds) })
            }
            _ => None,
        })
    };
    // As many as may be are blocked there already.
    _ = parts.observed.blocked.block_all(blocks_of(false), now);
    if parts.near.origin().is_some() {
        parts.observed.blocked.take_over_shared(blocks_of(true).collect());
    }
    for change in changes {
        if !apply_one(&change, parts) {
            tracing::info!(?change, "an operator's change ends: the configuration is another one");
        }
    }
}

fn apply_one(change: &OperatorChange, parts: &AdminParts) -> bool {
    let observed = &parts.observed;
    match change {
        OperatorChange::Maintenance { site, route, page, retry_after_seconds, allow } => {
            let Ok(except) = peers(allow) else { return false };
            let (page, retry_after_seconds) = (page.clone(), *retry_after_seconds);
            let maintenance = Maintenance { page, retry_after_seconds, except };
            let held = HeldRoutes { site: site.clone(), route: route.clone() };
            observed.maintenance.begin(held, maintenance, &parts.route_names)
        }
        // All of them are blocked together.
        OperatorChange::Blocked { .. } => true,
        OperatorChange::ServerState { upstream, server, is_disabled } => {
            let state =
                if *is_disabled { OperatorState::Disabled } else { OperatorState::Draining };
            change_server(&observed.upstreams, upstream, server, ServerChange::State(state), |_| {
                true
            })
        }
        OperatorChange::ServerWeight { upstream, server, weight, configured } => {
            let change = ServerChange::Weight(Some(*weight));
            change_server(&observed.upstreams, upstream, server, change, |server| {
                server.weight == *configured
            })
        }
        OperatorChange::Workers { app, workers, configured } => {
            let app = observed.apps.iter().find(|known| known.name() == app);
            let app = app.filter(|app| app.wanted_workers().1 == *configured);
            app.inspect(|app| app.set_workers(*workers)).is_some()
        }
    }
}

fn change_server(
    upstreams: &[Arc<Upstream>],
    upstream: &str,
    server: &str,
    change: ServerChange,
    applies_to: impl Fn(&ServerStatus) -> bool,
) -> bool {
    let Some(upstream) = upstreams.iter().find(|known| known.name() == upstream) else {
        return false;
    };
    let known = upstream.server_status();
    known.iter().any(|known| known.name == server && applies_to(known))
        && upstream.change_server(server, change) > 0
}
