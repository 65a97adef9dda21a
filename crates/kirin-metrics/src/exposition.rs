//! The text of metrics, in OpenMetrics 1.0 or in the older format of Prometheus.
//!
//! The two differ in a few points. OpenMetrics names a counter without `_total` in its `TYPE`, has
//! the type `info` and `UNIT` lines, and ends with `# EOF`.

use std::fmt::{self, Write};

use crate::family::{Family, MetricKind};
use crate::format::Format;
use crate::histogram::HistogramValues;

/// A text in the making. The samples of a family must follow each other.
#[derive(Debug)]
pub struct Exposition {
    format: Format,
    text: String,
    family: Option<&'static str>,
}

/// The value of a sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SampleValue {
    /// A whole number.
    Whole(u64),
    /// A number with a fraction.
    Real(f64),
}

impl From<u64> for SampleValue {
    fn from(number: u64) -> Self {
        Self::Whole(number)
    }
}

impl From<usize> for SampleValue {
    fn from(number: usize) -> Self {
        Self::Whole(number as u64)
    }
}

impl From<bool> for SampleValue {
    fn from(yes: bool) -> Self {
        Self::Whole(u64::from(yes))
    }
}

impl From<f64> for SampleValue {
    fn from(number: f64) -> Self {
        Self::Real(number)
    }
}

impl fmt::Display for SampleValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(number) => write!(f, "{number}"),
            Self::Real(number) => write!(f, "{number}"),
        }
    }
}

impl Exposition {
    /// Returns an empty text.
    pub fn new(format: Format) -> Self {
        Self { format, text: String::new(), family: None }
    }

    /// Adds a sample. `labels` are the values of the family's labels, in their order.
    pub fn sample(&mut self, family: &Family, labels: &[&str], value: impl Into<SampleValue>) {
        self.begin(family);
        self.line(family, family.suffix(), labels, None, value.into());
    }

    /// Adds a histogram. `labels` are the values of the family's labels, in their order.
    pub fn histogram(&mut self, family: &Family, labels: &[&str], values: &HistogramValues) {
        self.begin(family);
        for (bound, count) in values.cumulative() {
            self.line(family, "_bucket", labels, Some(bound), count.into());
        }
        self.line(family, "_sum", labels, None, values.sum_seconds().into());
        self.line(family, "_count", labels, None, values.count().into());
    }

    /// Returns the complete text.
    pub fn finish(mut self) -> String {
        if self.format == Format::OpenMetrics {
            self.text.push_str("# EOF\n");
        }
        self.text
    }

    /// Writes the lines before the first sample of a family.
    fn begin(&mut self, family: &Family) {
        if self.family == Some(family.name) {
            return;
        }
        self.family = Some(family.name);
        let (name, kind) = match self.format {
            Format::OpenMetrics => (family.name.to_owned(), family.kind.name()),
            Format::Text => {
                let kind =
                    if family.kind == MetricKind::Info { MetricKind::Gauge } else { family.kind };
                ([family.name, family.suffix()].concat(), kind.name())
            }
        };
        let text = &mut self.text;
        // Writing to a string does not fail.
        _ = writeln!(text, "# TYPE {name} {kind}");
        if let (Format::OpenMetrics, Some(unit)) = (self.format, family.unit()) {
            _ = writeln!(text, "# UNIT {name} {unit}");
        }
        _ = write!(text, "# HELP {name} ");
        push_escaped(text, family.help);
        text.push('\n');
    }

    fn line(
        &mut self,
        family: &Family,
        suffix: &str,
        labels: &[&str],
        bound: Option<&str>,
        value: SampleValue,
    ) {
        debug_assert_eq!(family.labels.len(), labels.len(), "{}", family.name);
        let text = &mut self.text;
        text.push_str(family.name);
        text.push_str(suffix);
        let named = family.labels.iter().copied().zip(labels.iter().copied());
        let mut before = '{';
        for (name, value) in named.chain(bound.map(|bound| ("le", bound))) {
            text.push(before);
            text.push_str(name);
            text.push_str("=\"");
            push_escaped(text, value);
            text.push('"');
            before = ',';
        }
        if before == ',' {
            text.push('}');
        }
        _ = writeln!(text, " {value}");
    }
}

/// Appends the value of a label, or a help text, with the characters escaped that would end it.
fn push_escaped(text: &mut String, value: &str) {
    for character in value.chars() {
        match character {
            '\\' => text.push_str("\\\\"),
            '"' => text.push_str("\\\""),
            '\n' => text.push_str("\\n"),
            other => text.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;
    use crate::Histogram;

    const SENT: Family = Family {
        name: "x_sent_bytes",
        kind: MetricKind::Counter,
        labels: &["to"],
        help: "Bytes that were sent.",
    };
    const OPEN: Family =
        Family { name: "x_open", kind: MetricKind::Gauge, labels: &[], help: "Open things." };
    const BUILD: Family = Family {
        name: "x_build",
        kind: MetricKind::Info,
        labels: &["version"],
        help: "The version.",
    };

    fn text(format: Format) -> String {
        let mut exposition = Exposition::new(format);
        exposition.sample(&SENT, &["a\"b\\c\nd"], 3u64);
        exposition.sample(&SENT, &["é"], 4u64);
        exposition.sample(&OPEN, &[], 0.5);
        exposition.sample(&BUILD, &["1.0"], true);
        exposition.finish()
    }

    #[test]
    fn openmetrics_names_counters_without_total_and_ends_with_eof() {
        let expected = "# TYPE x_sent_bytes counter\n\
            # UNIT x_sent_bytes bytes\n\
            # HELP x_sent_bytes Bytes that were sent.\n\
            x_sent_bytes_total{to=\"a\\\"b\\\\c\\nd\"} 3\n\
            x_sent_bytes_total{to=\"é\"} 4\n\
            # TYPE x_open gauge\n\
            # HELP x_open Open things.\n\
            x_open 0.5\n\
            # TYPE x_build info\n\
            # HELP x_build The version.\n\
            x_build_info{version=\"1.0\"} 1\n\
            # EOF\n";
        assert_eq!(text(Format::OpenMetrics), expected);
    }

    #[test]
    fn the_older_format_names_each_family_as_its_samples() {
        let expected = "# TYPE x_sent_bytes_total counter\n\
            # HELP x_sent_bytes_total Bytes that were sent.\n\
            x_sent_bytes_total{to=\"a\\\"b\\\\c\\nd\"} 3\n\
            x_sent_bytes_total{to=\"é\"} 4\n\
            # TYPE x_open gauge\n\
            # HELP x_open Open things.\n\
            x_open 0.5\n\
            # TYPE x_build_info gauge\n\
            # HELP x_build_info The version.\n\
            x_build_info{version=\"1.0\"} 1\n";
        assert_eq!(text(Format::Text), expected);
    }

    #[test]
    fn a_histogram_has_cumulative_buckets_sum_and_count() {
        const TIME: Family = Family {
            name: "x_seconds",
            kind: MetricKind::Histogram,
            labels: &["a"],
            help: "Times.",
        };
        let histogram = Histogram::default();
        for milliseconds in [1, 2, 70_000] {
            histogram.observe(Duration::from_millis(milliseconds));
        }
        let mut values = HistogramValues::default();
        histogram.add_to(&mut values);
        let mut exposition = Exposition::new(Format::OpenMetrics);
        exposition.histogram(&TIME, &["b"], &values);
        let text = exposition.finish();
        for line in [
            "x_seconds_bucket{a=\"b\",le=\"0.0005\"} 0",
            "x_seconds_bucket{a=\"b\",le=\"0.001\"} 1",
            "x_seconds_bucket{a=\"b\",le=\"60.0\"} 2",
            "x_seconds_bucket{a=\"b\",le=\"+Inf\"} 3",
            "x_seconds_sum{a=\"b\"} 70.003",
            "x_seconds_count{a=\"b\"} 3",
        ] {
            assert!(text.lines().any(|found| found == line), "no {line} in\n{text}");
        }
    }

    proptest! {
        #[test]
        fn a_label_of_any_text_stays_on_its_line_and_within_its_quotes(value in any::<String>()) {
            let mut exposition = Exposition::new(Format::Text);
            exposition.sample(&SENT, &[&value], 1u64);
            let text = exposition.finish();
            prop_assert_eq!(text.split('\n').count(), 4, "{}", text);
            let line = text.split('\n').nth(2).unwrap();
            let inside = line.strip_prefix("x_sent_bytes_total{to=\"").unwrap();
            let inside = inside.strip_suffix("\"} 1").unwrap();
            let mut plain = String::new();
            let mut characters = inside.chars();
            while let Some(character) = characters.next() {
                prop_assert_ne!(character, '"');
                plain.push(match character {
                    '\\' if characters.as_str().starts_with('n') => {
                        characters.next();
                        '\n'
                    }
                    '\\' => characters.next().unwrap(),
                    other => other,
                });
            }
            prop_assert_eq!(plain, value);
        }
    }
}
