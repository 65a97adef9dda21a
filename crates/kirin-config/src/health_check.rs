//! `health` of an upstream: how Kirin finds out which servers are healthy.

use std::num::NonZeroU32;

use kirin_proxy::{HealthConfig, HostPolicy};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::default::seconds;
use crate::source::{ConfigError, ConfigSource};
use crate::units::Seconds;
use crate::upstream::host_policy;
use crate::written::Written;

/// The checks of an upstream's servers.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HealthSection {
    /// The path, with a query if there is one, that Kirin asks for with GET. Servers that speak
    /// FastCGI, SCGI or uwsgi have no `path`, `host` and `status`: Kirin only connects to them.
    pub path: Option<Written<String>>,
    /// The `Host` of the check. Default: the name of the server.
    pub host: Option<Written<String>>,
    /// The time between two checks.
    #[serde(default = "seconds::<5>")]
    pub interval: Seconds,
    /// How long a response may take.
    #[serde(default = "seconds::<2>")]
    pub timeout: Seconds,
    /// The status of a healthy server: one status, such as `"204"`, or a range.
    #[serde(default)]
    pub status: Written<StatusText>,
    /// The number of good responses in a row after which an unhealthy server gets requests again.
    #[serde(default = "healthy_after")]
    pub healthy_after: NonZeroU32,
    /// The number of failures in a row after which a server gets no more requests.
    #[serde(default = "unhealthy_after")]
    pub unhealthy_after: NonZeroU32,
}

fn healthy_after() -> NonZeroU32 {
    NonZeroU32::MIN.saturating_add(1)
}

fn unhealthy_after() -> NonZeroU32 {
    NonZeroU32::MIN.saturating_add(2)
}

/// The status of a healthy server, as it is written.
#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(transparent)]
#[schemars(inline)]
pub struct StatusText(String);

impl Default for StatusText {
    fn default() -> Self {
        Self("200-399".into())
    }
}

/// Checks `health`. Kirin asks a server by HTTP if `is_http`, and otherwise only connects.
pub fn check_health(
    health: &Written<HealthSection>,
    is_http: bool,
    source: &ConfigSource,
) -> Result<HealthConfig, ConfigError> {
    let span = health.span();
    let none = Written::default_value("/".to_owned());
    let path = match &health.path {
        Some(path) if is_http => path,
        None if is_http => {
            return Err(
                source.error(span, "`health` needs a `path`, such as { path = \"/health\" }")
            );
        }
        asked => {
            let asked = asked.as_ref().map(|path| ("path", path.span()));
            let host = health.host.as_ref().map(|host| ("host", host.span()));
            let status = health.status.is_written().then(|| ("status", health.status.span()));
            if let Some((key, span)) = asked.or(host).or(status) {
                let message = format!(
                    "`{key}` of `health`: servers that speak FastCGI, SCGI or uwsgi are connected to \
                     and asked for nothing; allowed are `interval`, `timeout`, `healthy_after` and `unhealthy_after`"
                );
                return Err(source.error(span, message));
            }
            &none
        }
    };
    let path_span = path.span();
    let path = path.as_str();
    if !path.starts_with('/') || !path.bytes().all(|byte| byte.is_ascii_graphic()) {
        let message = format!("`path` is `{path}`: it begins with `/` and is percent-encoded");
        return Err(source.error(path_span, message));
    }
    let named = health.host.as_ref().map(|name| match host_policy(name) {
        Ok(HostPolicy::Name(name)) => Ok(name),
        Ok(HostPolicy::Client | HostPolicy::Upstream) => {
            Err(source.error(name.span(), "`host` of a health check is a name"))
        }
        Err(message) => Err(source.error(name.span(), message)),
    });
    let status = health.status.0.as_str();
    let (first, last) = status.split_once('-').unwrap_or((status, status));
    let number = |text: &str| text.parse().ok().filter(|status| (200..600).contains(status));
    let status = match (number(first), number(last)) {
        (Some(first), Some(last)) if first <= last => first..=last,
        _ => {
            let message =
                format!("`status` is `{status}`: allowed is such as \"200\" or \"200-399\"");
            return Err(source.error(health.status.span(), message));
        }
    };
    Ok(HealthConfig {
        path: path.to_owned(),
        host: named.transpose()?,
        interval: health.interval.into(),
        timeout: health.timeout.into(),
        status,
        healthy_after: health.healthy_after.get(),
        unhealthy_after: health.unhealthy_after.get(),
    })
}
