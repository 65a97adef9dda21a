//! The accounts of bytes that are held for clients: one for the process, and one for each listener.

use std::sync::Arc;

use kirin_config::{ListenerSite, Site};
use kirin_http::{ClientBytes, ListenerBytes};

/// All accounts of the program.
#[derive(Clone)]
pub struct ClientAccounts {
    /// The account of all clients.
    pub all: Arc<ClientBytes>,
    /// The account of each listener, in the order of the configuration.
    pub listeners: Vec<Arc<ListenerBytes>>,
}

impl ClientAccounts {
    /// Creates accounts with the limits of `site`.
    pub fn new(site: &Site) -> Self {
        let all = ClientBytes::new(site.client_memory_bytes, site.client_disk_bytes);
        let of_listener = |listener: &ListenerSite| {
            ListenerBytes::new(&all, listener.client_memory_bytes, listener.client_disk_bytes)
        };
        let listeners = site.listeners.iter().map(of_listener).collect();
        Self { all, listeners }
    }
}
