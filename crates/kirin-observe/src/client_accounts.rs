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
        let of_listener = |listener: &ListenerConfig| {
            ListenerBytes::new(&all, listener.client_memory_bytes, listener.client_disk_bytes)
        };
        let listeners = config.listeners.iter().map(of_listener).collect();
        Self { all, listeners }
    }
}
