//! A client connection as a socket: its state, its deadline, and the proxies in front of it.

pub(crate) mod client_socket;
pub(crate) mod connection_facts;
pub mod counters;
pub mod idle_connection;
pub(crate) mod io;
pub(crate) mod open_connections;
pub(crate) mod presence;
pub(crate) mod proxied;
pub mod proxy_protocol;
