//! The settings of the HTTP listeners of a configuration, as all event loops use them.

use std::sync::Arc;

use kirin_config::partners::Partners;
use kirin_config::{Config, ListenerConfig};
use kirin_observe::client_accounts::ClientAccounts;
use kirin_server::{ConnectionAdmission, ConnectionCount, Limits, OpenLog};

use crate::serve::logs::{self, LogError, Logs};

/// The settings of one listener.
#[derive(Clone)]
pub struct ListenerSettings {
    /// The settings; their limits count the connections and bytes of all loops.
    pub config: ListenerConfig,
    /// The access log.
    pub log: Option<OpenLog>,
}

/// Returns which listener of `before` each listener continues: the one with the same address. Of
/// several with one address (any free port), each continues another.
pub fn partners(before: &[ListenerConfig], after: &[ListenerConfig]) -> Partners {
    Partners::find(before, after, &[&|listener| listener.address.to_string()])
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
        let partner = partners.get(number).copied().flatten();
        let admission = partner.and_then(|partner| partner.config.limits.admission.clone());
        let new_admission =
            || ConnectionAdmission::new(Arc::clone(connections), listener.connections_per_address);
        let limits = Limits {
            admission: Some(admission.unwrap_or_else(new_admission)),
            client_bytes: accounts.listeners.get(number).cloned(),
            ..listener.limits.clone()
        };
        let config = ListenerConfig { limits, ..listener.clone() };
        Ok(ListenerSettings { config, log })
    };
    config.listeners.iter().enumerate().map(of_listener).collect()
}
