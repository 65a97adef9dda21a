#![forbid(unsafe_code)]
//! Traces: a span for each request, with its parts, exported to an OpenTelemetry collector.
//!
//! [`TraceObserver`] learns about each request of an event loop and makes its spans ([`spans`]).
//! [`TraceExporter`] queues them. A thread of the OpenTelemetry SDK sends them by OTLP over HTTP
//! ([`client`]). If the collector is slow or away, the queue fills up and spans are dropped. No
//! request waits.

mod client;
mod exporter;
mod observer;
mod spans;

pub use exporter::{TraceConfig, TraceExporter, TraceExporterError};
pub use observer::TraceObserver;
