//! Error output of CGI programs and FastCGI servers, as lines for the log. Their number and length
//! are bounded.

/// The most bytes of one line.
const MAX_LINE_BYTES: usize = 2048;

/// The most lines of one response.
const MAX_LINES: usize = 50;

/// The error output of one response, of which a part may have arrived.
#[derive(Debug, Default)]
pub struct ErrorOutput {
    /// The part of a line that has arrived.
    line: Vec<u8>,
    /// Lines so far.
    lines: usize,
}

impl ErrorOutput {
    /// Takes the next bytes, and gives each complete line to `log`.
    pub fn take(&mut self, bytes: &[u8], mut log: impl FnMut(&str)) {
        for (number, part) in bytes.split(|byte| *byte == b'\n').enumerate() {
            if number > 0 {
                self.end_line(&mut log);
            }
            let room = MAX_LINE_BYTES - self.line.len();
            self.line.extend_from_slice(part.get(..room).unwrap_or(part));
        }
    }

    /// Ends the error output of a response: gives the last line to `log`. Returns the number of
    /// lines that were not given, because there were too many.
    pub fn end(&mut self, mut log: impl FnMut(&str)) -> usize {
        self.end_line(&mut log);
        self.line = Vec::new();
        std::mem::take(&mut self.lines).saturating_sub(MAX_LINES)
    }

    fn end_line(&mut self, log: &mut impl FnMut(&str)) {
        let line = self.line.trim_ascii();
        if !line.is_empty() {
            self.lines += 1;
            if self.lines <= MAX_LINES {
                log(&String::from_utf8_lossy(line));
            }
        }
        self.line.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_bounded_in_number_and_length() {
        let (mut output, mut lines) = (ErrorOutput::default(), Vec::new());
        output.take(&[b'x'; 10_000], |line| lines.push(line.to_owned()));
        assert!(lines.is_empty() && output.line.len() == MAX_LINE_BYTES);
        output.take(&b"\ny".repeat(1000), |line| lines.push(line.to_owned()));
        let dropped = output.end(|line| lines.push(line.to_owned()));
        assert_eq!((lines.len(), dropped), (MAX_LINES, 1001 - MAX_LINES));
        assert_eq!((lines[0].len(), lines[1].as_str()), (MAX_LINE_BYTES, "y"));
        assert_eq!((output.lines, output.line.capacity()), (0, 0));
    }

    #[test]
    fn a_line_may_arrive_in_parts_and_an_empty_one_is_none() {
        let (mut output, mut lines) = (ErrorOutput::default(), Vec::new());
        for part in ["oh", "\n\n \r\nn", "o"] {
            output.take(part.as_bytes(), |line| lines.push(line.to_owned()));
        }
        assert_eq!(output.end(|line| lines.push(line.to_owned())), 0);
        assert_eq!(lines, ["oh", "no"]);
    }
}
