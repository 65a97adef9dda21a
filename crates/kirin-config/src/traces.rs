//! `[traces]`: the collector that gets the traces of requests.

use http::Uri;
use kirin_http::TraceSampling;
use kirin_traces::TraceConfig;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::source::{ConfigError, ConfigSource};
use crate::written::Written;

/// Traces of requests, which Kirin sends to an OpenTelemetry collector ([traces.md](traces.md)).
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TracesSection {
    /// The collector's OTLP receiver for HTTP, such as `"http://127.0.0.1:4318"`. Kirin adds
    /// `/v1/traces`.
    pub endpoint: Written<String>,
    /// The share of the requests that are traced, from 0 to 1. A trusted proxy that sends
    /// `traceparent` decides for its requests itself. Default: 1.
    pub sample: Option<Written<f64>>,
    /// The `service.name` of the spans. Default: `"kirin"`.
    pub service: Option<String>,
}

/// Checks `traces`.
pub fn check_traces(
    traces: &TracesSection,
    source: &ConfigSource,
) -> Result<TraceConfig, ConfigError> {
    let endpoint: &str = &traces.endpoint;
    let uri = endpoint.parse::<Uri>().ok();
    let is_valid = uri.is_some_and(|uri| {
        matches!(uri.scheme_str(), Some("http" | "https"))
            && uri.host().is_some()
            && uri.query().is_none()
    });
    if !is_valid {
        let message = format!(
            "`endpoint` is {endpoint:?}: it must be the http or https URL of a collector, such as \
             \"http://127.0.0.1:4318\""
        );
        return Err(source.error(traces.endpoint.span(), message));
    }
    let share = traces.sample.as_ref().map_or(1.0, |sample| **sample);
    if let Some(sample) = &traces.sample
        && !(0.0..=1.0).contains(&share)
    {
        let message = format!("`sample` is {share}: allowed are 0 to 1");
        return Err(source.error(sample.span(), message));
    }
    Ok(TraceConfig {
        endpoint: endpoint.to_owned(),
        sampling: TraceSampling::new(share),
        service: traces.service.clone().unwrap_or_else(|| "kirin".into()),
    })
}
