//! The changes that operators make to the servers of upstreams.

use kirin_proxy::{MAX_WEIGHT, OperatorState, ServerChange, Upstream};
use serde::Deserialize;

use crate::admin::unknown_name::UnknownName;

/// A change to a server of an upstream.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChangeRequest {
    /// The name of the upstream.
    upstream: String,
    /// The server, as the status shows it, or its address alone.
    server: String,
    /// What is to be changed.
    action: Action,
    /// The weight, for [`Action::Weigh`]. Without one that of the configuration.
    weight: Option<u32>,
}

/// What is to be changed.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Action {
    Drain,
    Disable,
    Enable,
    Weigh,
}

impl ChangeRequest {
    /// Makes the change. Returns what was done, or a message for the operator.
    pub fn apply<'a>(
        &self,
        upstreams: impl Iterator<Item = &'a Upstream> + Clone,
    ) -> Result<String, String> {
        let change = match (self.action, self.weight) {
            (Action::Drain, None) => ServerChange::State(OperatorState::Draining),
            (Action::Disable, None) => ServerChange::State(OperatorState::Disabled),
            (Action::Enable, None) => ServerChange::State(OperatorState::Enabled),
            (Action::Weigh, Some(weight)) if !(1..=MAX_WEIGHT).contains(&weight) => {
                return Err(format!("weight is {weight}: allowed is 1 to {MAX_WEIGHT}"));
            }
            (Action::Weigh, weight) => ServerChange::Weight(weight),
            (_, Some(_)) => return Err("only `weigh` has a weight".to_owned()),
        };
        let Some(upstream) = upstreams.clone().find(|known| known.name() == self.upstream) else {
            let known = upstreams.map(Upstream::name);
            return Err(UnknownName::new("upstream", &self.upstream, known).to_string());
        };
        let ChangeRequest { upstream: name, server, .. } = self;
        if upstream.change_server(server, change) == 0 {
            let known = upstream.server_status();
            let known: Vec<&str> = known.iter().map(|server| server.name.as_str()).collect();
            let known = known.join(", ");
            return Err(format!("upstream `{name}` has no server `{server}`; it has {known}"));
        }
        let done = match change {
            ServerChange::State(OperatorState::Enabled) => "is enabled".to_owned(),
            ServerChange::State(OperatorState::Draining) => {
                "drains: it gets only visitors that were sent to it before".to_owned()
            }
            ServerChange::State(OperatorState::Disabled) => "is disabled".to_owned(),
            ServerChange::Weight(Some(weight)) => format!("has the weight {weight}"),
            ServerChange::Weight(None) => "has the weight of the configuration".to_owned(),
        };
        tracing::info!("upstream {name}: {server} {done}, by an operator");
        Ok(format!("upstream {name}: {server} {done}\n"))
    }
}
