//! `kirin maintenance`: holds a site or a route of a running Kirin with 503, and serves it again.

use clap::{Args, Subcommand};
use kirin_config::Seconds;
use serde_json::json;

use crate::print::print;
use crate::running::RunningKirin;

/// The arguments of `kirin maintenance`.
#[derive(Args)]
pub struct MaintenanceArgs {
    #[command(subcommand)]
    action: Action,
}

/// What is to be done.
#[derive(Subcommand)]
enum Action {
    /// Answer all requests with 503
    On {
        #[command(flatten)]
        held: HeldArgs,
        /// The path of the page that clients get, such as /errors/maintenance.html [default: that
        /// of `error_pages` for 503]
        #[arg(long, value_name = "PATH")]
        page: Option<String>,
        /// When clients may come again, such as 30m
        #[arg(long, value_name = "TIME", default_value = "10m")]
        retry_after: Seconds,
        /// Serve clients of this address or network as usual. Can be repeated
        #[arg(long, value_name = "NETWORK")]
        allow: Vec<String>,
    },
    /// Serve clients again
    Off {
        #[command(flatten)]
        held: HeldArgs,
    },
}

/// What is held.
#[derive(Args)]
struct HeldArgs {
    /// Only this site: its name, or one of its hosts
    #[arg(long, value_name = "NAME")]
    site: Option<String>,
    /// Only the route with these paths, as the configuration has them
    #[arg(long, value_name = "PATH")]
    route: Option<String>,
    #[command(flatten)]
    at: RunningKirin,
}

/// Carries out the command.
pub fn run(arguments: &MaintenanceArgs) -> Result<(), String> {
    let (held, change) = match &arguments.action {
        Action::On { held, page, retry_after, allow } => {
            let HeldArgs { site, route, .. } = held;
            let change = json!({
                "action": "on", "site": site, "route": route,
                "page": page, "retry_after": retry_after, "allow": allow,
            });
            (held, change)
        }
        Action::Off { held } => {
            (held, json!({ "action": "off", "site": held.site, "route": held.route }))
        }
    };
    print(&held.at.find()?.post_change("/maintenance", &change)?)
}
