//! A line of the program's log, as the library formats it. A line about a request ends with the id
//! of the request, so that what a visitor has seen leads to it.

use std::fmt;

use kirin_http::request_scope::current_request;
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::{Format, Full, Writer};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, format};
use tracing_subscriber::registry::LookupSpan;

/// The format of lines.
pub struct LogLine {
    library: Format<Full>,
    is_coloured: bool,
}

impl LogLine {
    /// Returns the format, for a terminal that shows colours or for a file.
    pub fn new(is_coloured: bool) -> Self {
        Self { library: format().with_target(false).with_ansi(is_coloured), is_coloured }
    }
}

impl<S, N> FormatEvent<S, N> for LogLine
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let Some(id) = current_request() else {
            return self.library.format_event(context, writer, event);
        };
        let mut line = String::new();
        self.library.format_event(context, Writer::new(&mut line), event)?;
        let line = line.trim_end_matches('\n');
        // The library writes the names of values in italics, and dims `=`.
        match self.is_coloured {
            true => writeln!(writer, "{line} \x1b[3mrequest_id\x1b[0m\x1b[2m=\x1b[0m{id}"),
            false => writeln!(writer, "{line} request_id={id}"),
        }
    }
}
