//! The settings of an origin.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kirin_client_tls::{ClientTlsError, ClientTlsSettings};
use rustls::ClientConfig;

use crate::address::Address;
use crate::names::Names;

/// How long a command may take, if nobody has said.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_millis(500);

/// How long copies are served without a proof, if nobody has said.
pub const DEFAULT_STALE_LIMIT: Duration = Duration::from_secs(5);

/// The shortest limit for copies without a proof. The store counts in whole seconds.
pub const LEAST_STALE_LIMIT: Duration = Duration::from_secs(2);

/// A limit for copies without a proof that is too short.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at least {}s is needed", LEAST_STALE_LIMIT.as_secs())]
pub struct StaleLimitError;

/// The settings of an origin.
#[derive(Clone, Debug)]
pub struct OriginConfig {
    /// The server.
    pub address: Address,
    /// How the server is trusted, if the connection uses TLS.
    pub tls: Option<Arc<ClientConfig>>,
    /// The names of keys on the server.
    pub names: Names,
    /// How long a command may take. No client waits longer for the server than this for each trip.
    pub timeout: Duration,
    /// How long copies are served when the server no longer proves that they are true. Whole
    /// seconds, at least [`LEAST_STALE_LIMIT`].
    pub stale_limit: Duration,
}

impl OriginConfig {
    /// Returns the settings of a server with the usual names and limits. If its address says so,
    /// the connection uses TLS, and the server has a certificate of an authority in the PEM file
    /// `ca`, or else of one of the system.
    pub fn new(address: Address, ca: Option<PathBuf>) -> Result<Self, ClientTlsError> {
        let settings = ClientTlsSettings { ca, ..ClientTlsSettings::default() };
        let tls = address.uses_tls().then(|| settings.load()).transpose()?.map(Arc::new);
        Ok(Self {
            address,
            tls,
            names: Names::default(),
            timeout: DEFAULT_TIMEOUT,
            stale_limit: DEFAULT_STALE_LIMIT,
        })
    }
}

/// Checks how long copies may be served without a proof.
pub fn check_stale_limit(limit: Duration) -> Result<(), StaleLimitError> {
    if limit < LEAST_STALE_LIMIT { Err(StaleLimitError) } else { Ok(()) }
}
