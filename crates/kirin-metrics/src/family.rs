//! Metric families: what a metric is called, counts, and is labelled with.

/// The kind of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// A number that only grows.
    Counter,
    /// A number that goes up and down.
    Gauge,
    /// Durations in buckets.
    Histogram,
    /// Facts as labels. The value is 1.
    Info,
}

impl MetricKind {
    /// Returns the word in OpenMetrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
            Self::Info => "info",
        }
    }
}

/// All series of one name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Family {
    /// The name as OpenMetrics has it, without `_total` or `_info`.
    pub name: &'static str,
    /// The kind.
    pub kind: MetricKind,
    /// The names of the labels.
    pub labels: &'static [&'static str],
    /// What is counted, in a sentence.
    pub help: &'static str,
}

impl Family {
    /// Returns what the samples have behind the name. Those of a histogram have more than one.
    pub const fn suffix(&self) -> &'static str {
        match self.kind {
            MetricKind::Counter => "_total",
            MetricKind::Info => "_info",
            MetricKind::Gauge | MetricKind::Histogram => "",
        }
    }

    /// Returns the unit, which the name ends with.
    pub fn unit(&self) -> Option<&'static str> {
        ["seconds", "bytes"]
            .into_iter()
            .find(|unit| self.name.strip_suffix(unit).is_some_and(|before| before.ends_with('_')))
    }
}
