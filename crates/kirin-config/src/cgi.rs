//! The `cgi` key of a route: what its CGI programs may take.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Instant;

use kirin_cgi_programs::{PoolLimits, ProgramPool, ProgramSettings};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::default::whole_seconds;
use crate::source::{ConfigError, ConfigSource, ErrorCollector};
use crate::units::{Number, Seconds};
use crate::written::Written;

/// The most requests that can wait for a program.
const MAX_QUEUE: u64 = 1_000_000;

/// What the CGI programs of a route may take.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CgiSection {
    /// The most programs of the route that run at the same time, counted over all event loops.
    pub max_in_flight: NonZeroU32,
    /// The most requests that wait while `max_in_flight` programs run. A further one is answered
    /// 503. Clients take turns: a client with many requests in the queue delays another one by one
    /// request.
    pub queue: Number<0, MAX_QUEUE>,
    /// How long a request may wait for its program to be started. Then it is answered 503.
    pub queue_wait: Seconds,
    /// How long a program may take for a request. The time in which it waits for a slow client does
    /// not count. Then Kirin ends it, and the client gets 504, or its connection is cut if a part
    /// of the response has been sent.
    pub deadline: Seconds,
    /// Environment variables for the programs, such as `{ GITWEB_CONFIG = "/etc/gitweb.conf" }`.
    /// They replace those of the request. Of Kirin's own variables programs get `PATH` only.
    pub env: BTreeMap<Written<String>, Written<String>>,
}

impl Default for CgiSection {
    fn default() -> Self {
        let limits = PoolLimits::default();
        Self {
            max_in_flight: limits.max_in_flight,
            queue: Number::new(limits.queue as u64),
            queue_wait: whole_seconds(limits.queue_wait),
            deadline: whole_seconds(ProgramSettings::DEADLINE),
            env: BTreeMap::new(),
        }
    }
}

/// Checks the key of a route, which has a place with programs.
pub fn check_cgi(
    section: &CgiSection,
    source: &ConfigSource,
    errors: &mut ErrorCollector,
) -> Option<ProgramSettings> {
    let limits = PoolLimits {
        max_in_flight: section.max_in_flight,
        queue: section.queue.length(),
        queue_wait: section.queue_wait.into(),
    };
    let variables = section.env.iter().map(|(name, value)| check_variable(name, value, source));
    let environment = errors.keep(variables.collect::<Result<_, ConfigError>>())?;
    Some(ProgramSettings {
        pool: Arc::new(ProgramPool::new(limits, Instant::now())),
        deadline: section.deadline.into(),
        environment,
        spool_directory: std::env::temp_dir(),
    })
}

/// Checks that the kernel can give a variable to a process.
fn check_variable(
    name: &Written<String>,
    value: &Written<String>,
    source: &ConfigSource,
) -> Result<(String, String), ConfigError> {
    if name.is_empty() || name.contains(['=', '\0']) {
        let message = format!("`env` has `{}`: that is not the name of a variable", name.as_str());
        return Err(source.error(name.span(), message));
    }
    if value.contains('\0') {
        let message = format!("`env.{}` has a NUL", name.as_str());
        return Err(source.error(value.span(), message));
    }
    Ok((name.as_str().into(), value.as_str().into()))
}
