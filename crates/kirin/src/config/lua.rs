//! `[lua]`: what scripts may take.

use kirin_lua::Limits;
use schemars::JsonSchema;
use serde::Deserialize;

use super::load::{ConfigError, Source};
use super::units::{ByteSize, Milliseconds};

/// The least that a state with a small script needs.
const MIN_MEMORY_BYTES: u64 = 1 << 20;

/// What scripts may take.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LuaConfig {
    /// How long one call of a script may run, such as `"100ms"` or `"1s"`; waiting for other routes
    /// and for the request's body does not count. Other requests of the loop wait meanwhile. A call
    /// that runs longer is ended and answered 504.
    #[schemars(with = "String")]
    pub time_limit: Milliseconds,
    /// The memory of one script on one event loop. A call that would need more is ended and
    /// answered 500.
    #[schemars(with = "String")]
    pub memory_limit: ByteSize,
    /// The largest request body, and body of an answer to `kirin.fetch`, that a script reads.
    #[schemars(with = "String")]
    pub body_limit: ByteSize,
}

impl Default for LuaConfig {
    fn default() -> Self {
        let limits = Limits::default();
        Self {
            time_limit: Milliseconds(limits.time.as_millis() as u64),
            memory_limit: ByteSize(limits.memory_bytes as u64),
            body_limit: ByteSize(limits.body_bytes),
        }
    }
}

/// Checks `config`.
pub fn limits(config: &LuaConfig, source: &Source) -> Result<Limits, ConfigError> {
    if config.memory_limit.0 < MIN_MEMORY_BYTES {
        return Err(source.error_in_all(format!(
            "`lua.memory_limit` is {}: at least 1MB is needed",
            config.memory_limit
        )));
    }
    Ok(Limits {
        time: config.time_limit.into(),
        memory_bytes: usize::try_from(config.memory_limit.0).unwrap_or(usize::MAX),
        body_bytes: config.body_limit.0,
    })
}
