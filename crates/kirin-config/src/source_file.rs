//! One file of a configuration: its text, and the lines of the text.
//!
//! The files of a configuration share one range of offsets: each begins where the one before has
//! ended. So an offset alone says in which file and on which line a value is written.

/// The text of one file.
#[derive(Clone, Debug)]
pub struct SourceFile {
    /// The name of the file, for messages.
    pub name: String,
    /// The TOML text.
    pub text: String,
    /// The offset of the first byte.
    pub begin: usize,
    /// Where the lines begin in the text, in bytes.
    line_begins: Vec<usize>,
}

impl SourceFile {
    /// Makes a file whose first byte has the offset `begin`.
    pub fn new(name: String, text: String, begin: usize) -> Self {
        let after_line_ends = text.match_indices('\n').map(|(at, _)| at + 1);
        let line_begins = std::iter::once(0).chain(after_line_ends).collect();
        Self { name, text, begin, line_begins }
    }

    /// Returns the offset at which the next file begins. The end of this file is not part of it:
    /// an error may point there.
    pub fn next_begin(&self) -> usize {
        self.begin + self.text.len() + 1
    }

    /// Returns the number of the line with this offset, from 1.
    pub fn line_of(&self, offset: usize) -> usize {
        let at = offset.saturating_sub(self.begin);
        self.line_begins.partition_point(|begin| *begin <= at)
    }

    /// Returns the line with this offset, and the place of the offset in the line, in bytes.
    pub fn line_at(&self, offset: usize) -> Option<(&str, usize)> {
        let begin = *self.line_begins.get(self.line_of(offset).checked_sub(1)?)?;
        let line = self.text.get(begin..)?.lines().next().unwrap_or("");
        Some((line, offset.checked_sub(self.begin + begin)?))
    }

    /// Returns the place of this offset as messages write it: `FILE:LINE:COLUMN`.
    pub fn place(&self, offset: usize) -> String {
        let before = self.line_at(offset).map(|(line, at)| line.get(..at).unwrap_or(line));
        let column = before.map_or(0, |before| before.chars().count()) + 1;
        format!("{}:{}:{column}", self.name, self.line_of(offset))
    }
}

/// Returns the file that has this offset.
pub fn file_at(files: &[SourceFile], offset: usize) -> Option<&SourceFile> {
    let after = files.partition_point(|file| file.begin <= offset);
    files.get(after.checked_sub(1)?)
}

/// Returns the line of `offset` as the rest of a message at `from`: `line 3`, or `line 3 of FILE`
/// if that is another file.
pub fn line_seen_from(files: &[SourceFile], offset: usize, from: usize) -> String {
    match (file_at(files, offset), file_at(files, from)) {
        (Some(file), Some(other)) if file.begin == other.begin => {
            format!("line {}", file.line_of(offset))
        }
        (Some(file), _) => format!("line {} of {}", file.line_of(offset), file.name),
        (None, _) => "another line".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offset_leads_to_its_file_and_line() {
        let first = SourceFile::new("a".into(), "x = 1\n\u{e9} = 2".into(), 0);
        let second = SourceFile::new("b".into(), "y\n\nz\n".into(), first.next_begin());
        let files = [first, second];
        for (offset, place, line) in [
            (0, "a:1:1", "x = 1"),
            (5, "a:1:6", "x = 1"),
            (6, "a:2:1", "\u{e9} = 2"),
            (8, "a:2:2", "\u{e9} = 2"),
            (12, "a:2:6", "\u{e9} = 2"),
            (13, "b:1:1", "y"),
            (15, "b:2:1", ""),
            (16, "b:3:1", "z"),
            (18, "b:4:1", ""),
        ] {
            let file = file_at(&files, offset).expect("a file");
            assert_eq!(file.place(offset), place);
            assert_eq!(file.line_at(offset).map(|(line, _)| line), Some(line), "{place}");
        }
        assert_eq!(line_seen_from(&files, 6, 0), "line 2");
        assert_eq!(line_seen_from(&files, 6, 16), "line 2 of a");
    }
}
