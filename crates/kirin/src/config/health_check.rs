//! Health checks of an upstream's servers, as a user writes them.

use std::num::NonZeroU32;

use kirin_proxy::{HealthConfig, HostPolicy};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_spanned::Spanned;

use super::default;
use super::load::{ConfigError, Source};
use super::units::Seconds;
use super::upstream::{host, is_written};

/// How servers are asked whether they are well.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UpstreamHealthConfig {
    /// The path, with a query if there is one, that is asked for with GET. Not for servers that
    /// speak FastCGI, SCGI or uwsgi, nor are `host` and `status`: they are connected to, and no
    /// more.
    #[schemars(with = "Option<String>")]
    pub path: Option<Spanned<String>>,
    /// `Host`. Default: the server's own.
    #[schemars(with = "Option<String>")]
    pub host: Option<Spanned<String>>,
    /// From one time to the next.
    #[serde(default = "default::health_interval")]
    #[schemars(with = "String", default = "default::health_interval")]
    pub interval: Seconds,
    /// How long an answer may take.
    #[serde(default = "default::health_timeout")]
    #[schemars(with = "String", default = "default::health_timeout")]
    pub timeout: Seconds,
    /// The status of a server that is well: one, such as `"204"`, or from one to another.
    #[serde(default = "default::health_status")]
    #[schemars(with = "String", default = "default::health_status_plain")]
    pub status: Spanned<String>,
    /// Good answers in a row after which an unhealthy server gets requests again.
    #[serde(default = "default::healthy_after")]
    pub healthy_after: NonZeroU32,
    /// Bad ones in a row after which it gets none any more.
    #[serde(default = "default::unhealthy_after")]
    pub unhealthy_after: NonZeroU32,
}

/// Checks `health`, which goes by HTTP or is a connection only.
pub fn check_health(
    health: &Spanned<UpstreamHealthConfig>,
    is_http: bool,
    source: &Source,
) -> Result<HealthConfig, ConfigError> {
    let (span, health) = (health.span(), health.get_ref());
    let none = Spanned::new(0..0, "/".to_owned());
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
            let status =
                Some(("status", health.status.span())).filter(|(_, span)| is_written(span));
            if let Some((key, span)) = asked.or(host).or(status) {
                let message = format!(
                    "`{key}` of `health`: servers that speak FastCGI, SCGI or uwsgi are connected to and asked for \
                     nothing; allowed are `interval`, `timeout`, `healthy_after` and `unhealthy_after`"
                );
                return Err(source.error(span, message));
            }
            &none
        }
    };
    let path_span = path.span();
    let path = path.get_ref();
    if !path.starts_with('/') || !path.bytes().all(|byte| byte.is_ascii_graphic()) {
        let message = format!("`path` is `{path}`: it begins with `/` and is percent-encoded");
        return Err(source.error(path_span, message));
    }
    let named = health.host.as_ref().map(|name| match host(name, source)? {
        HostPolicy::Name(name) => Ok(name),
        HostPolicy::Client | HostPolicy::Upstream => {
            Err(source.error(name.span(), "`host` of a health check is a name"))
        }
    });
    let status = health.status.get_ref();
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
        path: path.clone(),
        host: named.transpose()?,
        interval: health.interval.into(),
        timeout: health.timeout.into(),
        status,
        healthy_after: health.healthy_after.get(),
        unhealthy_after: health.unhealthy_after.get(),
    })
}
