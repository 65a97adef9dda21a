//! The log of the program, which goes to standard error. `KIRIN_LOG=debug` shows more.
//!
//! Nothing waits for standard error or ends because of it. Its disk may be full, its terminal
//! closed, its reader stuck. So lines are queued, and a thread writes them. Lines that cannot be
//! written are counted.

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::sync::OnceLock;
use std::time::Duration;

use kirin_console::{colours, units};
use kirin_server::logging::queued_writer::{
    LogOutput, QueuedWriter, WriteError, count_lines, write_patiently,
};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::life::log_line::LogLine;

/// The most bytes that wait for standard error.
const QUEUE_BYTES: usize = 1 << 20;

/// How long the program waits at its end until its last lines are written. On a loaded machine it
/// takes more than a second until the thread that writes them has its turn, and one of the lines
/// may say why the program cannot start. A reader that is stuck must not hold it for ever.
const LAST_LINES: Duration = Duration::from_secs(5);

/// The advice for a wrong `KIRIN_LOG`.
const ALLOWED: &str = "use a level (off, error, warn, info, debug or trace), or a list such as \
    `info,kirin_proxy=debug`, in which a level may be that of one module";

static QUEUE: OnceLock<QueuedWriter> = OnceLock::new();

/// Starts to log. Lines are queued until [`start_thread`], because the program changes its user
/// while it has one thread.
pub fn start() -> Result<(), String> {
    let filter = match std::env::var("KIRIN_LOG") {
        Err(std::env::VarError::NotPresent) => Targets::new().with_default(LevelFilter::INFO),
        Err(std::env::VarError::NotUnicode(_)) => {
            return Err(format!("KIRIN_LOG is not UTF-8: {ALLOWED}"));
        }
        Ok(text) => parse_filter(&text)?,
    };
    let filter = without_h2(filter);
    let is_coloured = io::stderr().is_terminal() && colours::are_wanted();
    let lines = tracing_subscriber::fmt::layer()
        .event_format(LogLine::new(is_coloured))
        .with_writer(|| ProgramLine);
    tracing_subscriber::registry().with(filter).with(lines).init();
    Ok(())
}

/// Parses `KIRIN_LOG`. A word that is no level is refused. The library would take it for a module,
/// and a misspelt level would silence everything.
fn parse_filter(text: &str) -> Result<Targets, String> {
    let mut filter = Targets::new().with_default(LevelFilter::INFO);
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let level = |level: &str| {
            let is_name = level.bytes().all(|byte| byte.is_ascii_alphabetic());
            let parsed = level.parse::<LevelFilter>().ok().filter(|_| is_name && !level.is_empty());
            parsed
                .ok_or_else(|| format!("KIRIN_LOG=`{text}`: `{part}` is not understood: {ALLOWED}"))
        };
        filter = match part.split_once('=') {
            None => filter.with_default(level(part)?),
            Some((module, word)) => filter.with_target(module.trim(), level(word.trim())?),
        };
    }
    Ok(filter)
}

/// Returns the filter without the warnings of the library h2, which do not say who the client is.
/// Kirin logs the end of such a connection with its client. A level above `info`, or one for h2,
/// shows them.
fn without_h2(filter: Targets) -> Targets {
    let is_named = filter.iter().any(|(target, _)| target.starts_with("h2"));
    match filter.default_level() {
        Some(LevelFilter::DEBUG | LevelFilter::TRACE) => filter,
        _ if is_named => filter,
        _ => filter.with_target("h2", LevelFilter::ERROR),
    }
}

/// Starts the thread that writes queued lines. Call this when the program has become the user that
/// serves.
pub fn start_thread() {
    queue().start();
}

/// Writes lines that are no log lines, such as the error that ends the program. Files and command
/// lines may have characters that control a terminal. They are replaced.
pub fn print_line(text: &str) {
    print_coloured(&units::plain_lines(text));
}

/// Writes lines that may have colours.
pub fn print_coloured(text: &str) {
    // The queue counts lost lines.
    let _ = queue().push(format!("{text}\n").as_bytes());
}

/// Waits for at most [`LAST_LINES`] until all lines are written. Call this at the end of the
/// program.
pub fn flush() {
    queue().flush(LAST_LINES);
}

/// Returns the number of lines that could not be written.
pub fn lost_lines() -> u64 {
    queue().lost_lines()
}

fn queue() -> &'static QueuedWriter {
    QUEUE.get_or_init(|| {
        QueuedWriter::new(
            Box::new(StandardError { copy: copy_of_stderr().ok(), is_torn: false }),
            QUEUE_BYTES,
        )
    })
}

/// One log line, as the library formats it.
struct ProgramLine;

impl Write for ProgramLine {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let _ = queue().push(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A copy of standard error. The handle of the standard library has a lock that a stuck reader
/// would hold. The copy is made at the start, since a process without free descriptors must still
/// be able to log.
struct StandardError {
    copy: Option<File>,
    /// Whether a write has failed inside a line.
    is_torn: bool,
}

fn copy_of_stderr() -> io::Result<File> {
    io::stderr().as_fd().try_clone_to_owned().map(File::from)
}

impl LogOutput for StandardError {
    fn write(&mut self, lines: &[u8]) -> Result<(), WriteError> {
        let copy = match self.copy.take() {
            Some(copy) => Ok(copy),
            None => copy_of_stderr(),
        };
        copy.and_then(|copy| write_patiently(self.copy.insert(copy), lines, &mut self.is_torn))
            .map_err(|error| WriteError { error, lost_lines: count_lines(lines) })
    }

    fn failed(&mut self, _error: &io::Error) {
        // The error cannot be logged. The status counts the lost lines.
    }

    fn recovered(&mut self, lost_lines: u64) {
        tracing::warn!(
            lines = lost_lines,
            "standard error is written again; lines of this log were lost"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracing::Level;

    #[test]
    fn log_levels_are_read_and_other_words_are_refused() {
        let enabled = |text: &str, module: &str, level: &Level| {
            parse_filter(text).unwrap().would_enable(module, level)
        };
        for (text, module, level, expected) in [
            ("", "kirin", Level::INFO, true),
            ("", "kirin", Level::DEBUG, false),
            ("debug", "kirin", Level::DEBUG, true),
            ("WARN", "kirin", Level::INFO, false),
            ("off", "kirin", Level::ERROR, false),
            ("info,kirin_proxy=debug", "kirin_proxy::place", Level::DEBUG, true),
            ("info, kirin_proxy = debug", "kirin_http", Level::DEBUG, false),
            ("kirin_proxy=trace", "kirin_http", Level::INFO, true),
        ] {
            assert_eq!(enabled(text, module, &level), expected, "{text} {module} {level}");
        }
        for text in ["bogus", "bogus=zz", "info,nonsense", "kirin=", "3", "debug;info"] {
            let message = parse_filter(text).expect_err(text);
            assert!(message.contains(text) && message.contains("debug or trace"), "{message}");
        }
    }
}
