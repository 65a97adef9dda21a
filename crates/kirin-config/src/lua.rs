//! `[lua]`: the limits of scripts.

use kirin_lua::Limits;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::default::{milliseconds, size};
use crate::source::{ConfigError, ConfigSource};
use crate::units::{ByteSize, Milliseconds};

/// The least memory that a state with a small script needs, in bytes.
const MIN_MEMORY_BYTES: u64 = 1 << 20;

/// The limits of scripts.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LuaSection {
    /// How long one call of a script may run, such as `"100ms"` or `"1s"`. Time in which it waits
    /// for other routes or for the request's body does not count. Other requests of the event loop
    /// wait while the script runs. Kirin ends a call that runs longer, and answers 504.
    pub time_limit: Milliseconds,
    /// The memory of one script on one event loop. Kirin ends a call that needs more, and answers
    /// 500.
    pub memory_limit: ByteSize,
    /// The largest request body, and the largest body of an answer to `kirin.fetch`, that a script
    /// can read.
    pub body_limit: ByteSize,
}

impl Default for LuaSection {
    fn default() -> Self {
        let limits = Limits::default();
        Self {
            time_limit: milliseconds(limits.time),
            memory_limit: size(limits.memory_bytes),
            body_limit: ByteSize(limits.body_bytes),
        }
    }
}

/// Checks `section`.
pub fn check_lua(section: &LuaSection, source: &ConfigSource) -> Result<Limits, ConfigError> {
    if section.memory_limit.0 < MIN_MEMORY_BYTES {
        let message =
            format!("`lua.memory_limit` is {}: at least 1MB is needed", section.memory_limit);
        return Err(source.error_in_all(message));
    }
    Ok(Limits {
        time: section.time_limit.into(),
        memory_bytes: section.memory_limit.length(),
        body_bytes: section.body_limit.0,
    })
}
