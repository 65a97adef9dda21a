//! Lines of plain and compressed logs.

use std::io::{self, Read};

use crate::filter::Filter;
use crate::line::{LONGEST_LINE, LineError, LineFormat, LogRecord, TimeUnit};

/// The bytes that are read at once.
const BLOCK: usize = 256 * 1024;

/// The lines after which a log without a line in a known format is given up.
const UNKNOWN_LINES: u64 = 100;

/// How a log is read.
#[derive(Clone, Debug, Default)]
pub struct LogOptions {
    /// The format. `None` finds it out.
    pub format: Option<LineFormat>,
    /// The unit of durations.
    pub unit: TimeUnit,
    /// Which requests are counted.
    pub filter: Filter,
}

/// The lines of a log.
#[derive(Debug, Default)]
pub struct LogReport {
    /// The lines that are not empty.
    pub lines: u64,
    /// The requests that the filter left out.
    pub left_out: u64,
    /// The lines that could not be read.
    pub malformed: u64,
    /// The number of the first of them, from 1, and the reason.
    pub first_malformed: Option<(u64, LineError)>,
}

/// Reads a log, and calls `take` with each request that the filter lets pass. The log may be
/// compressed with gzip or Zstandard.
pub fn read_log<'r>(
    reader: impl Read + 'r,
    options: &LogOptions,
    mut take: impl FnMut(&LogRecord<'_>),
) -> io::Result<LogReport> {
    let mut report = LogReport::default();
    let mut format = options.format.clone();
    let mut line_number = 0;
    for_each_line(&mut *decompressed(reader)?, |line| {
        line_number += 1;
        let Some(line) = line else {
            report.lines += 1;
            report.count_malformed(line_number, LineError::TooLong);
            return true;
        };
        if line.is_empty() {
            return true;
        }
        report.lines += 1;
        let guess = if format.is_none() { LineFormat::guess(line) } else { None };
        let known = format.as_ref().or(guess.as_ref());
        let read = known.ok_or(LineError::UnknownFormat);
        let read = read.and_then(|format| format.parse(line, options.unit));
        if read.is_ok() && guess.is_some() {
            format = guess;
        }
        let result = read.and_then(|record| Ok(options.filter.takes(&record)?.then_some(record)));
        match result {
            Ok(Some(record)) => take(&record),
            Ok(None) => report.left_out += 1,
            Err(error) => report.count_malformed(line_number, error),
        }
        format.is_some() || report.lines < UNKNOWN_LINES
    })?;
    Ok(report)
}

/// Returns whether one of the first lines of a log has a format, or the log has no lines.
pub fn has_format<'r>(reader: impl Read + 'r, format: &LineFormat) -> io::Result<bool> {
    let (mut lines, mut is_found) = (0, false);
    for_each_line(&mut *decompressed(reader)?, |line| {
        let line = line.filter(|line| !line.is_empty());
        lines += u64::from(line.is_some());
        is_found = line.is_some_and(|line| format.parse(line, TimeUnit::Seconds).is_ok());
        !is_found && lines < UNKNOWN_LINES
    })?;
    Ok(is_found || lines == 0)
}

impl LogReport {
    /// Returns whether no line could be read.
    pub fn is_unreadable(&self) -> bool {
        self.lines > 0 && self.malformed == self.lines
    }

    fn count_malformed(&mut self, line_number: u64, error: LineError) {
        self.malformed += 1;
        if self.first_malformed.is_none() {
            self.first_malformed = Some((line_number, error));
        }
    }
}

/// Returns the decompressed bytes of a log. The first bytes say how it is compressed.
fn decompressed<'r>(mut reader: impl Read + 'r) -> io::Result<Box<dyn Read + 'r>> {
    let mut first = Vec::with_capacity(6);
    reader.by_ref().take(6).read_to_end(&mut first)?;
    let is = |magic: &[u8]| first.starts_with(magic);
    let is_gzip = is(&[0x1f, 0x8b]);
    let is_zstd = is(&[0x28, 0xb5, 0x2f, 0xfd]);
    if is(b"BZh") || is(&[0xfd, b'7', b'z', b'X', b'Z', 0]) {
        let message = "compressed with bzip2 or xz; kirin reads gzip and Zstandard";
        return Err(io::Error::new(io::ErrorKind::InvalidData, message));
    }
    let reader = io::Cursor::new(first).chain(reader);
    Ok(if is_gzip {
        let reader = io::BufReader::with_capacity(BLOCK, reader);
        Box::new(flate2::bufread::MultiGzDecoder::new(reader))
    } else if is_zstd {
        Box::new(zstd::stream::read::Decoder::new(reader)?)
    } else {
        Box::new(reader)
    })
}

/// Calls `take` with each line without its line end, or with `None` for a line that is too long.
/// Ends when `take` returns false.
fn for_each_line(
    reader: &mut dyn Read,
    mut take: impl FnMut(Option<&[u8]>) -> bool,
) -> io::Result<()> {
    let mut buffer = vec![0; BLOCK];
    // The bytes of an incomplete line are at the start of the buffer.
    let mut filled = 0;
    let mut is_skipping = false;
    loop {
        if filled == buffer.len() {
            if buffer.len() >= LONGEST_LINE {
                is_skipping = true;
                filled = 0;
            } else {
                buffer.resize(buffer.len() * 2, 0);
            }
        }
        let count = match reader.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let (searched, end) = (filled, filled + count);
        let mut start = 0;
        for at in memchr::memchr_iter(b'\n', &buffer[searched..end]) {
            let line = &buffer[start..searched + at];
            start = searched + at + 1;
            let line = (!std::mem::take(&mut is_skipping)).then(|| without_return(line));
            if !take(line) {
                return Ok(());
            }
        }
        buffer.copy_within(start..end, 0);
        filled = end - start;
    }
    if is_skipping {
        take(None);
    } else if filled > 0 {
        take(Some(without_return(&buffer[..filled])));
    }
    Ok(())
}

fn without_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use proptest::prelude::*;

    use super::*;

    /// A reader that gives few bytes at once.
    struct Slow<'a>(&'a [u8], usize);

    impl Read for Slow<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let limit = self.1.min(buffer.len());
            self.0.read(&mut buffer[..limit])
        }
    }

    fn lines(text: &[u8], at_once: usize) -> Vec<Option<Vec<u8>>> {
        let mut lines = Vec::new();
        for_each_line(&mut Slow(text, at_once), |line| {
            lines.push(line.map(<[u8]>::to_vec));
            true
        })
        .expect("reads");
        lines
    }

    /// Reads a log, and returns its report and the targets.
    fn read(log: &[u8], options: &LogOptions) -> (LogReport, Vec<String>) {
        let mut targets = Vec::new();
        let report = read_log(log, options, |record| {
            targets.push(String::from_utf8_lossy(&record.target).into_owned());
        });
        (report.expect("reads"), targets)
    }

    #[test]
    fn a_line_that_is_too_long_is_skipped() {
        for length in [LONGEST_LINE - 1, LONGEST_LINE, LONGEST_LINE + 1, 3 * LONGEST_LINE] {
            for tail in [&b"\nshort"[..], b""] {
                let text = [&b"first\n"[..], &vec![b'x'; length], tail].concat();
                let found = lines(&text, 100_000);
                let count = 2 + usize::from(!tail.is_empty());
                assert_eq!(found.len(), count, "{length}");
                assert_eq!(found[1].is_none(), length >= LONGEST_LINE, "{length}");
                if !tail.is_empty() {
                    assert_eq!(found[2].as_deref(), Some(&b"short"[..]));
                }
            }
        }
    }

    #[test]
    fn malformed_lines_are_counted_and_the_first_is_named() {
        let log = b"# comment\n\n{\"uri\":\"/a\",\"status\":200}\r\nnoise\n{\"uri\":\"/b\",\"status\":1}\n{\n";
        let (report, targets) = read(log, &LogOptions::default());
        assert_eq!(targets, ["/a", "/b"]);
        assert_eq!((report.lines, report.malformed), (5, 3));
        let (number, error) = report.first_malformed.expect("a malformed line");
        let message = error.to_string();
        assert!(message.starts_with("neither combined nor LTSV nor JSON"), "{message}");
        assert_eq!(number, 1);
    }

    #[test]
    fn a_log_in_no_known_format_is_given_up() {
        let log = "noise\n".repeat(1000) + "{\"uri\":\"/a\",\"status\":200}\n";
        let (report, targets) = read(log.as_bytes(), &LogOptions::default());
        assert!(report.is_unreadable() && targets.is_empty());
        assert_eq!(report.lines, UNKNOWN_LINES);
        let options = LogOptions { format: Some(LineFormat::Json), ..LogOptions::default() };
        assert_eq!(read(log.as_bytes(), &options).1, ["/a"]);
    }

    #[test]
    fn the_first_lines_say_whether_a_log_has_a_format() {
        let json = "{\"uri\":\"/a\",\"status\":200}\n";
        for (log, expected) in [
            (String::new(), true),
            ("\n\n".into(), true),
            (json.into(), true),
            (format!("noise\n{json}"), true),
            ("noise\n".into(), false),
            ("noise\n".repeat(100) + json, false),
        ] {
            let found = has_format(log.as_bytes(), &LineFormat::Json).expect("reads");
            assert_eq!(found, expected, "{} lines", log.lines().count());
        }
    }

    #[test]
    fn compressed_logs_of_several_parts_are_read() {
        let line = b"{\"uri\":\"/a\",\"status\":200}\n";
        let gzip = || {
            let mut encoder =
                flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(line).expect("writes");
            encoder.finish().expect("ends")
        };
        let zstd = || zstd::encode_all(&line[..], 1).expect("compresses");
        for log in [line.repeat(2), [gzip(), gzip()].concat(), [zstd(), zstd()].concat()] {
            assert_eq!(read(&log, &LogOptions::default()).1, ["/a", "/a"]);
        }
        let gzip = gzip();
        assert!(read_log(&gzip[..gzip.len() - 4], &LogOptions::default(), |_| {}).is_err());
        assert!(read_log(&b"BZh91AY"[..], &LogOptions::default(), |_| {}).is_err());
    }

    proptest! {
        #[test]
        fn lines_are_those_of_the_text(text in "[a\n\r]{0,60}", at_once in 1_usize..9) {
            let mut expected: Vec<&[u8]> = text.as_bytes().split(|byte| *byte == b'\n').collect();
            if expected.last().is_some_and(|last| last.is_empty()) {
                expected.pop();
            }
            let expected: Vec<_> =
                expected.iter().map(|line| Some(without_return(line).to_vec())).collect();
            prop_assert_eq!(lines(text.as_bytes(), at_once), expected);
        }

        #[test]
        fn no_bytes_panic(log in proptest::collection::vec(any::<u8>(), 0..300), kind in 0..4) {
            let magic: &[u8] = match kind {
                0 => &[0x1f, 0x8b, 8, 0],
                1 => &[0x28, 0xb5, 0x2f, 0xfd],
                _ => &[],
            };
            let _ = read_log(&[magic, &log].concat()[..], &LogOptions::default(), |_| {});
        }
    }
}
