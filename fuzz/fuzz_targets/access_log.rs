//! Access logs in all formats, also those of a text, and the reports of them. No input panics, no
//! line is lost, and the memory of the patterns is bounded.
#![no_main]

use kirin_log_summary::filter::{Filter, parse_moment};
use kirin_log_summary::input::{LogOptions, read_log};
use kirin_log_summary::line::LineFormat;
use kirin_log_summary::report::{self, Order, ReportFormat, Sort, Uncounted};
use kirin_log_summary::summary::Summary;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((kind, log)) = input.split_first() else { return };
    let (format, log) = match kind % 7 {
        0 => (None, log),
        1 => (Some(LineFormat::Combined), log),
        2 => (Some(LineFormat::Ltsv), log),
        3 => (Some(LineFormat::Json), log),
        4 => (Some(LineFormat::Terminal), log),
        // The first line is the format: that of an argument, or of a configuration.
        kind => {
            let Some(at) = log.iter().position(|byte| *byte == b'\n') else { return };
            let Ok(text) = std::str::from_utf8(&log[..at]) else { return };
            let format = match kind {
                5 => LineFormat::from_text(text),
                _ => LineFormat::of_configuration(text),
            };
            let Ok(format) = format else { return };
            (Some(format), &log[at + 1..])
        }
    };
    // Times are read only if they are compared.
    let since = parse_moment("1970-01-01").ok().filter(|_| kind % 2 == 0);
    let filter = Filter { since, ..Filter::default() };
    let options = LogOptions { format, filter, ..LogOptions::default() };
    let mut summary = Summary::new(Vec::new(), 2);
    let mut counted = 0;
    // A compressed log may be cut short.
    let Ok(log) = read_log(log, &options, |record| {
        summary.add(counted % 2, "site", record);
        counted += 1;
    }) else {
        return;
    };
    assert_eq!(log.lines, log.malformed + log.left_out + counted as u64);
    assert_eq!(summary.total(0).count + summary.total(1).count, counted as u64);
    let order = Order { sort: Sort::P95, is_reversed: false, limit: 10 };
    for output in
        [ReportFormat::Text, ReportFormat::Markdown, ReportFormat::Csv, ReportFormat::Json]
    {
        let text = report::report(&summary, Uncounted::default(), order, output)
            + &report::compare(&summary, [Uncounted::default(); 2], order, output);
        // A terminal must not get what a stranger sent.
        assert!(text.chars().all(|c| c == '\n' || c == '\r' || !c.is_control()));
    }
});
