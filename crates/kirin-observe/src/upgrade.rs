//! The request and the answer of `POST /upgrade`, which `kirin upgrade` sends.

use serde::{Deserialize, Serialize};

/// What an operator wants.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct UpgradeWish {
    /// How long the new program may take until it serves. Without it a minute, and the longest
    /// `start_limit` of the applications.
    pub timeout_seconds: Option<u64>,
}

/// What an upgrade has done.
#[derive(Debug, Deserialize, Serialize)]
pub struct Upgraded {
    /// The process id of the program that serves now.
    pub pid: u32,
}
