//! The report as text for people.

use std::fmt::Write;

use kirin_advice::report::{Report, ReportEntry};
use kirin_advice::verdict::PageVerdict;

use super::findings::{missing_text, reason_text, steadiness};
use super::instructions::{write_cache, write_gaps, write_key};
use super::lines::{ConfigLines, NoLines};
use super::words::{code, share, visible};
use crate::units::{count, number_of};

/// The most entries of a section.
const MAX_SHOWN: usize = 20;

/// A section: its title, and which verdicts are in it.
type Section = (&'static str, fn(&PageVerdict) -> bool);

const SECTIONS: [Section; 7] = [
    ("The same for everybody", |verdict| matches!(verdict, PageVerdict::Everybody)),
    ("The same but for some places", |verdict| matches!(verdict, PageVerdict::SameBut { .. })),
    ("The same for visitors without a cookie", |verdict| {
        matches!(verdict, PageVerdict::WithoutCookie { .. })
    }),
    ("The same with a part of the request in the key", |verdict| {
        matches!(verdict, PageVerdict::NeedsKey { .. })
    }),
    ("In memory already, or changing too often", |verdict| {
        matches!(verdict, PageVerdict::Stored | PageVerdict::Changing)
    }),
    ("Too little evidence", |verdict| matches!(verdict, PageVerdict::Unproven { .. })),
    ("Not safe to share", |verdict| matches!(verdict, PageVerdict::Unsafe { .. })),
];

/// Writes the report. `lines` gives the lines of the configuration for an entry.
pub fn text(
    report: &Report,
    lines: impl Fn(&ReportEntry) -> Result<ConfigLines, NoLines>,
) -> String {
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{:.0} s, {} to applications and upstreams, {:.2} s of their time",
        report.seconds,
        number_of(report.requests, "request"),
        report.place_seconds
    );
    if report.requests == 0 {
        text += "No request reached an application or an upstream.\n";
        return text;
    }
    let _ = match report.sessions.as_slice() {
        [] => writeln!(text, "no cookie names sessions: too few visitors had one"),
        names => writeln!(
            text,
            "sessions: {}",
            names.iter().map(|name| code(name)).collect::<Vec<_>>().join(", ")
        ),
    };
    for (title, is_in) in SECTIONS {
        let entries: Vec<&ReportEntry> =
            report.entries.iter().filter(|entry| is_in(&entry.verdict)).collect();
        if entries.is_empty() {
            continue;
        }
        let requests: u64 = entries.iter().map(|entry| entry.saved_requests).sum();
        let seconds: f64 = entries.iter().map(|entry| entry.saved_seconds).sum();
        let _ = write!(text, "\n{title}");
        if requests > 0 {
            let _ = write!(
                text,
                ": memory would save {} of the requests, {} of the time",
                share(requests as f64, report.requests as f64),
                share(seconds, report.place_seconds)
            );
        }
        text.push('\n');
        for entry in entries.iter().take(MAX_SHOWN) {
            write_entry(&mut text, entry, report, &lines);
        }
        if entries.len() > MAX_SHOWN {
            let _ = writeln!(text, "\n  and {} more (--json has them)", entries.len() - MAX_SHOWN);
        }
    }
    if report.left_out > 0 {
        let _ = writeln!(
            text,
            "\n{} only counted: for paths that do not exist (4xx), or for more targets than there is room for",
            number_of(report.left_out, "request")
        );
    }
    if report.without_pieces > 0 {
        let _ = writeln!(
            text,
            "\n{} only compared as a whole: there was no room for more pieces of bodies",
            number_of(report.without_pieces, "response")
        );
    }
    text
}

fn write_entry(
    text: &mut String,
    entry: &ReportEntry,
    report: &Report,
    lines: &impl Fn(&ReportEntry) -> Result<ConfigLines, NoLines>,
) {
    let _ = write!(text, "\n  {}", visible(&entry.target));
    if entry.pages > 1 {
        let _ = write!(text, " ({} pages)", entry.pages);
    }
    let _ = write!(text, "  {} {}", entry.route.place, visible(&entry.host));
    if !entry.site.is_empty() && entry.site != entry.host {
        let _ = write!(text, ", site {}", entry.site);
    }
    text.push('\n');
    let _ = write!(
        text,
        "    {}, {:.3} s ({} of the time)",
        number_of(entry.requests, "request"),
        entry.place_seconds,
        share(entry.place_seconds, report.place_seconds)
    );
    if entry.saved_requests > 0 {
        let _ = write!(
            text,
            "; memory would save {}, {:.3} s",
            count(entry.saved_requests),
            entry.saved_seconds
        );
    }
    text.push('\n');
    if let Some(steady) = &entry.steady {
        let _ = writeln!(
            text,
            "    {}; seen by {}",
            steadiness(steady),
            number_of(entry.visitors as u64, "visitor")
        );
    }
    match &entry.verdict {
        PageVerdict::Everybody | PageVerdict::WithoutCookie { .. } => {
            write_cache(text, entry, lines(entry))
        }
        PageVerdict::SameBut { gaps } => write_gaps(text, entry, gaps, report),
        PageVerdict::NeedsKey { key, values } => write_key(text, key, *values),
        PageVerdict::Changing => *text += "    It changes too often for a `ttl`.\n",
        PageVerdict::Stored => *text += "    The application stores it (`Kirin-Store`).\n",
        PageVerdict::Unsafe { reasons } => {
            for reason in reasons {
                let _ = writeln!(text, "    {}", reason_text(reason));
            }
        }
        PageVerdict::Unproven { missing } => {
            for missing in missing {
                let _ = writeln!(text, "    {}", missing_text(missing));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::lines::tests::entry;
    use super::*;

    #[test]
    fn text_of_strangers_reaches_a_terminal_as_visible_characters_only() {
        let report = Report {
            seconds: 60.0,
            requests: 1200,
            place_seconds: 4.0,
            left_out: 1,
            without_pieces: 2,
            sessions: vec!["s\u{202e}id".into()],
            visitors_needed: 3,
            entries: vec![entry("/\u{1b}[2J\n", PageVerdict::Everybody)],
            more_entries: 0,
        };
        let text = text(&report, |_| Err(NoLines::Path));
        assert!(text.chars().all(|c| matches!(c, ' '..='~' | '\n')), "{text}");
        for part in [
            "1,200 requests to applications and upstreams, 4.00 s of their time\n",
            "sessions: `s\\u{202e}id`\n",
            "memory would save 1 % of the requests, 22 % of the time\n",
            "  /\\u{1b}[2J\\u{a}  app:web h\n",
            "\n1 request only counted: ",
            "\n2 responses only compared as a whole: ",
        ] {
            assert!(text.contains(part), "{part:?} is missing: {text}");
        }
    }
}
