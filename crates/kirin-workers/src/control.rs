//! The control channel: lines from the app parent to Kirin.

/// The longest line in bytes. A longer one is cut.
pub(crate) const MAX_LINE_BYTES: usize = 16 * 1024;

/// A line from the parent.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ControlLine {
    /// The application is loaded.
    Ready,
    /// A worker has been forked.
    Started { pid: u32 },
    /// A worker has ended with this wait status.
    Exited { pid: u32, status: i32 },
    /// The parent keeps this number of workers from now on.
    Workers { count: usize },
    /// The application cannot be loaded.
    Failed { message: String },
    /// A line that this version does not know.
    Unknown,
}

/// Parses a line without its line end.
pub(crate) fn parse(line: &[u8]) -> ControlLine {
    let line = String::from_utf8_lossy(line);
    let (word, rest) = line.split_once(' ').unwrap_or((&line, ""));
    let mut numbers = rest.split_ascii_whitespace();
    match word {
        "ready" => ControlLine::Ready,
        "failed" => ControlLine::Failed { message: unescape(rest) },
        "workers" => match numbers.next().map(str::parse) {
            Some(Ok(count)) => ControlLine::Workers { count },
            _ => ControlLine::Unknown,
        },
        "started" => match numbers.next().map(str::parse) {
            Some(Ok(pid)) => ControlLine::Started { pid },
            _ => ControlLine::Unknown,
        },
        "exited" => match (numbers.next().map(str::parse), numbers.next().map(str::parse)) {
            (Some(Ok(pid)), Some(Ok(status))) => ControlLine::Exited { pid, status },
            _ => ControlLine::Unknown,
        },
        _ => ControlLine::Unknown,
    }
}

/// Replaces `\n` and `\\` by a line end and a backslash.
fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut escaped = false;
    for character in text.chars() {
        match (escaped, character) {
            (false, '\\') => {
                escaped = true;
                continue;
            }
            (true, 'n') => out.push('\n'),
            (_, other) => out.push(other),
        }
        escaped = false;
    }
    out.truncate(out.trim_end().len());
    out
}

/// Describes a wait status (wait(2)) in words.
pub(crate) fn describe_wait_status(status: i32) -> String {
    use std::os::unix::process::ExitStatusExt;
    std::process::ExitStatus::from_raw(status).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_protocol_are_read() {
        for (line, expected) in [
            (&b"ready"[..], ControlLine::Ready),
            (b"started 17", ControlLine::Started { pid: 17 }),
            (b"workers 3", ControlLine::Workers { count: 3 }),
            (b"workers -3", ControlLine::Unknown),
            (b"exited 17 9", ControlLine::Exited { pid: 17, status: 9 }),
            (b"failed a\\nb \\\\n\\n", ControlLine::Failed { message: "a\nb \\n".into() }),
            (b"started x", ControlLine::Unknown),
            (b"exited 17", ControlLine::Unknown),
            (b"", ControlLine::Unknown),
            (b"future 1", ControlLine::Unknown),
        ] {
            assert_eq!(parse(line), expected, "{:?}", String::from_utf8_lossy(line));
        }
    }

    #[test]
    fn a_wait_status_is_told_in_words() {
        assert!(describe_wait_status(9).contains("SIGKILL"), "{}", describe_wait_status(9));
        assert!(describe_wait_status(256).contains('1'), "{}", describe_wait_status(256));
    }
}
