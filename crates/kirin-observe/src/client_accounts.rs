//! The accounts of bytes that are held for clients: one for the process, and one for each listener.

use std::sync::Arc;

use kirin_client_bytes::{ClientBytes, ListenerBytes};
use kirin_config::{Config, ListenerConfig};

/// All accounts of the program.
#[derive(Clone)]
pub struct ClientAccounts {
    /// The account of all clients.
    pub all: Arc<ClientBytes>,
    /// The account of each listener, in the order of the configuration.
    pub listeners: Vec<Arc<ListenerBytes>>,
}

impl ClientAccounts {
    /// Creates accounts with the limits of `config`.
    pub fn new(config: &Config) -> Self {
        let all = ClientBytes::new(config.client_memory_bytes, config.client_disk_bytes);
        let listeners = config.listeners.iter().map(|listener| new_account(&all, listener));
        Self { listeners: listeners.collect(), all }
    }

    /// Returns the accounts for the listeners of another configuration. A listener goes on with the
    /// account of its partner, which is given by number. The limits stay until
    /// [`ClientAccounts::set_limits`] is called.
    pub fn following(&self, config: &Config, partners: &[Option<usize>]) -> Self {
        let of_listener = |(listener, partner): (&ListenerConfig, &Option<usize>)| {
            let account = partner.and_then(|partner| self.listeners.get(partner));
            account.map_or_else(|| new_account(&self.all, listener), Arc::clone)
        };
        let listeners = config.listeners.iter().zip(partners).map(of_listener).collect();
        Self { all: Arc::clone(&self.all), listeners }
    }

    /// Sets the limits of the configuration.
    pub fn set_limits(&self, config: &Config) {
        self.all.set_limits(config.client_memory_bytes, config.client_disk_bytes);
        for (account, listener) in self.listeners.iter().zip(&config.listeners) {
            account.set_limits(listener.client_memory_bytes, listener.client_disk_bytes);
        }
    }
}

fn new_account(all: &Arc<ClientBytes>, listener: &ListenerConfig) -> Arc<ListenerBytes> {
    ListenerBytes::new(all, listener.client_memory_bytes, listener.client_disk_bytes)
}
