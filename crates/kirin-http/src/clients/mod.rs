//! Clients and listeners: addresses, certificates, and how slow a client may be.

pub(crate) mod client_certificate;
pub mod client_watch;
pub mod listen_address;
pub mod pace;
pub mod peer;
pub mod peer_set;
