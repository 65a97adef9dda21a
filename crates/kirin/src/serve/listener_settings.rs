//! The settings of the HTTP listeners of a configuration, as all event loops use them.

use std::sync::Arc;

use kirin_config::{Config, ListenerConfig};
use kirin_observe::client_accounts::ClientAccounts;
use kirin_server::{ConnectionAdmission, ConnectionCount, Limits, OpenLog};

use crate::serve::logs::{self, LogError, Logs};

/// The settings of one listener.
#[derive(Clone)]
pub struct ListenerSettings {
    /// The settings; their limits count the connections and bytes of all loops.
    pub config: ListenerConfig,
    /// Limits its connections.
    pub admission: Arc<ConnectionAdmission>,
    /// The access log.
    pub log: Option<OpenLog>,
}

/// Returns the number of the listener of `before` that each listener continues: the one with the
/// same address. Of several with one address (any free port), each continues another.
pub fn partners(before: &[ListenerConfig], after: &[ListenerConfig]) -> Vec<Option<usize>> {
    let mut is_taken = vec![false; before.len()];
    let mut partner = |listener: &ListenerConfig| {
        let is_same = |(at, other): &(usize, &ListenerConfig)| {
            !is_taken[*at] && other.address == listener.address
        };
        let found = before.iter().enumerate().find(is_same).map(|(at, _)| at);
        if let Some(at) = found {
            is_taken[at] = true;
        }
        found
    };
    after.iter().map(&mut partner).collect()
}

/// Returns the settings of all listeners, and opens their logs. A listener goes on counting what
/// its partner has counted.
pub fn settings(
    config: &Config,
    connections: &Arc<ConnectionCount>,
    accounts: &ClientAccounts,
    partners: &[Option<&ListenerSettings>],
    logs: &mut Logs,
) -> Result<Arc<[ListenerSettings]>, LogError> {
    let of_listener = |(number, listener): (usize, &ListenerConfig)| {
        let log = listener.access_log.as_ref();
        let log = log.map(|log| logs::open(log, config.user.as_ref(), logs)).transpose()?;
        let admission = match partners.get(number).copied().flatten() {
            Some(partner) => Arc::clone(&partner.admission),
            None => {
                let limit = listener.connections_per_address;
                ConnectionAdmission::new(Arc::clone(connections), limit)
            }
        };
        let limits = Limits {
            admission: Some(Arc::clone(&admission)),
            client_bytes: accounts.listeners.get(number).cloned(),
            ..listener.limits.clone()
        };
        let config = ListenerConfig { limits, ..listener.clone() };
        Ok(ListenerSettings { config, admission, log })
    };
    config.listeners.iter().enumerate().map(of_listener).collect()
}
