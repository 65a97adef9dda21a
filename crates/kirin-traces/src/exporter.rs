//! The queue of spans, and the thread that exports them.

use std::sync::Arc;
use std::time::Duration;

use kirin_http::TraceSampling;
use opentelemetry_otlp::{
    ExporterBuildError, Protocol, SpanExporter, WithExportConfig, WithHttpConfig,
};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{BatchSpanProcessor, SpanData, SpanProcessor};

use crate::client::CollectorClient;

/// How long the exporter waits for one answer of the collector.
const EXPORT_LIMIT: Duration = Duration::from_secs(10);

/// Where traces go, and which.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceConfig {
    /// The URL of the collector's OTLP receiver for HTTP, without `/v1/traces`.
    pub endpoint: String,
    /// The share of the traces that are recorded.
    pub sampling: TraceSampling,
    /// The `service.name` of all spans.
    pub service: String,
}

/// The exporter cannot be started.
#[derive(Debug, thiserror::Error)]
#[error("traces: {0}")]
pub struct TraceExporterError(#[from] ExporterBuildError);

/// The queue of spans that wait to be exported. All event loops share it.
#[derive(Clone)]
pub struct TraceExporter {
    processor: Arc<BatchSpanProcessor>,
}

impl TraceExporter {
    /// Starts the thread that exports spans. `OTEL_EXPORTER_OTLP_HEADERS` in the environment has
    /// fields for the collector, such as a key, as other programs have it.
    pub fn start(config: &TraceConfig) -> Result<Self, TraceExporterError> {
        let url = format!("{}/v1/traces", config.endpoint.trim_end_matches('/'));
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(CollectorClient::new(EXPORT_LIMIT))
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(url)
            .with_timeout(EXPORT_LIMIT)
            .build()?;
        let mut processor = BatchSpanProcessor::builder(exporter).build();
        let resource = Resource::builder().with_service_name(config.service.clone()).build();
        processor.set_resource(&resource);
        Ok(Self { processor: Arc::new(processor) })
    }

    /// Queues a span. It is dropped if the queue is full.
    pub(crate) fn export(&self, span: SpanData) {
        self.processor.on_end(span);
    }

    /// Exports what is queued, and ends the thread. Waits at most `limit`.
    pub fn stop(&self, limit: Duration) {
        if let Err(error) = self.processor.shutdown_with_timeout(limit) {
            tracing::warn!(%error, "not all traces are exported");
        }
    }
}
