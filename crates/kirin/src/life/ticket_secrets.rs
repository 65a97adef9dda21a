//! The secrets of session tickets, which go to the next program. So TLS sessions go on after an
//! upgrade.

use std::fmt;

use kirin_config::ListenerConfig;
use kirin_server::TicketSecret;
use serde::{Deserialize, Serialize};

/// The secret of a listener. Its `Debug` text does not show it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListenerSecret {
    address: String,
    secret: [u8; 32],
}

impl fmt::Debug for ListenerSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ListenerSecret").field("address", &self.address).finish_non_exhaustive()
    }
}

/// Returns the secrets of those listeners that have not read theirs from a file.
pub fn collect(listeners: &[ListenerConfig]) -> Vec<ListenerSecret> {
    let of_listener = |listener: &ListenerConfig| {
        let secret = listener.tls.as_ref()?.tls.ticket_secret()?;
        Some(ListenerSecret { address: listener.address.to_string(), secret: *secret.bytes() })
    };
    listeners.iter().filter_map(of_listener).collect()
}

/// Takes over the secrets of the listeners that have the same addresses.
pub fn take_over(secrets: Vec<ListenerSecret>, listeners: &[ListenerConfig]) {
    for ListenerSecret { address, secret } in secrets {
        let same = listeners.iter().filter(|listener| listener.address.to_string() == address);
        for tls in same.filter_map(|listener| listener.tls.as_ref()) {
            // Clients can do without their sessions.
            if let Err(error) = tls.tls.take_over_tickets(TicketSecret::from(secret)) {
                tracing::warn!(%address, %error, "clients cannot resume their TLS sessions");
            }
        }
    }
}
