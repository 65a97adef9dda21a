//! Whether there is a connection to the server, for people.

use crate::server_facts::ServerFacts;

/// Whether there is a connection to the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OriginState {
    /// There is none.
    Away {
        /// Why.
        reason: String,
    },
    /// There is one.
    Connected {
        /// The server.
        server: ServerFacts,
    },
}

impl Default for OriginState {
    fn default() -> Self {
        Self::Away { reason: "no connection yet".into() }
    }
}

impl OriginState {
    /// Returns why there is no connection.
    pub(crate) fn reason(&self) -> String {
        match self {
            Self::Away { reason } => reason.clone(),
            Self::Connected { .. } => "the connection has just ended".into(),
        }
    }
}
