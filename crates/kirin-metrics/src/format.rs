//! The formats of the text, and how a client chooses one.

/// The format of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// The older format of Prometheus, version 0.0.4.
    Text,
}

impl Format {
    /// Returns the format for a client with this `Accept`. A client gets OpenMetrics only if it
    /// names it, and prefers it to plain text or does not care.
    pub fn accepted(accept: &str) -> Self {
        let (mut open_metrics, mut text) = (None, None);
        for range in accept.split(',') {
            let mut parts = range.split(';').map(str::trim);
            let name = parts.next().unwrap_or_default();
            let (mut quality, mut is_known_version) = (1.0, true);
            for (name, value) in parts.filter_map(|part| part.split_once('=')) {
                match name.trim() {
                    "q" => quality = value.trim().parse().unwrap_or(0.0),
                    "version" => is_known_version = value.trim().trim_matches('"') == "1.0.0",
                    _ => {}
                }
            }
            let best = |before: Option<f32>| Some(before.map_or(quality, |q| q.max(quality)));
            if name.eq_ignore_ascii_case("application/openmetrics-text") && is_known_version {
                open_metrics = best(open_metrics);
            } else if name.eq_ignore_ascii_case("text/plain") {
                text = best(text);
            }
        }
        match open_metrics {
            Some(quality) if quality > 0.0 && text.is_none_or(|text| quality >= text) => {
                Self::OpenMetrics
            }
            _ => Self::Text,
        }
    }

    /// Returns the value of `Content-Type`.
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_gets_openmetrics_if_it_prefers_it_by_name() {
        // The first two are sent by Prometheus 2.42 and 3.
        for accept in [
            "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
            "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
            "application/openmetrics-text",
            "Application/OpenMetrics-Text; version=\"1.0.0\"",
            "text/plain, application/openmetrics-text",
        ] {
            assert_eq!(Format::accepted(accept), Format::OpenMetrics, "{accept}");
        }
        for accept in [
            "",
            "*/*",
            "text/plain",
            "text/html,*/*;q=0.8",
            "application/openmetrics-text;q=0",
            "application/openmetrics-text;q=bad",
            "application/openmetrics-text;version=2.0.0",
            "application/openmetrics-text;version=0.0.1",
            "application/openmetrics-text;q=0.5,text/plain;q=0.9",
        ] {
            assert_eq!(Format::accepted(accept), Format::Text, "{accept}");
        }
    }
}
