#![forbid(unsafe_code)]
//! Metrics without I/O: counters and histograms that one event loop writes and any thread reads
//! ([`Count`], [`Histogram`]), tables of them by labels ([`SeriesTable`]), and the text that
//! Prometheus reads ([`Exposition`]).
//!
//! The crate `prometheus-client` writes OpenMetrics only. Kirin also writes the older text format,
//! which `promtool check metrics` and older scrapers read, so the writer is its own.

mod count;
mod exposition;
mod family;
mod format;
mod histogram;
mod series;

pub use count::Count;
pub use exposition::{Exposition, SampleValue};
pub use family::{Family, MetricKind};
pub use format::Format;
pub use histogram::{BOUNDS, Histogram, HistogramValues};
pub use series::{SeriesList, SeriesTable};
