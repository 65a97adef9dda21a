//! Evidence: a file and a line of a project, and the fact that they show.

use std::fmt;

/// The most characters of a fact. A line of a project may be of any length.
const MAX_CHARACTERS: usize = 160;

/// A fact about a project, with the file and the line that show it.
///
/// All of its text can be printed: no character of it moves the cursor or ends a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// The path of the file or directory below the directory of the project.
    pub file: String,
    /// The number of the line, from 1.
    pub line: Option<usize>,
    /// The fact: the rest of a sentence that begins with the file.
    pub fact: String,
}

impl Evidence {
    /// Makes the evidence that a complete file is.
    pub(crate) fn of_file(file: &str, fact: impl AsRef<str>) -> Self {
        Self { file: printable(file), line: None, fact: printable(fact.as_ref()) }
    }

    /// Makes the evidence of one line of a file, if the line is known.
    pub(crate) fn of_line(file: &str, line: Option<usize>, fact: impl AsRef<str>) -> Self {
        Self { line, ..Self::of_file(file, fact) }
    }
}

impl fmt::Display for Evidence {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(formatter, "{} (line {line}) {}", self.file, self.fact),
            None => write!(formatter, "{} {}", self.file, self.fact),
        }
    }
}

/// Returns `text` on one line, of bounded length, with escapes for characters that a terminal would
/// obey.
pub(crate) fn printable(text: &str) -> String {
    let mut shown = String::new();
    for (count, character) in text.trim().chars().enumerate() {
        if count == MAX_CHARACTERS {
            shown.push('…');
            break;
        }
        match character {
            '\t' => shown.push(' '),
            _ if is_printable(character) => shown.push(character),
            _ => shown.extend(character.escape_unicode()),
        }
    }
    shown
}

/// Says whether a terminal and an editor show the character as it is. Control characters, line
/// separators and characters that change the direction of the text are not shown.
pub(crate) fn is_printable(character: char) -> bool {
    !character.is_control()
        && !matches!(
            character,
            '\u{00AD}'
                | '\u{061C}'
                | '\u{200B}'..='\u{200F}'
                | '\u{2028}'..='\u{202E}'
                | '\u{2060}'..='\u{206F}'
                | '\u{FEFF}'
                | '\u{FFF9}'..='\u{FFFB}'
                | '\u{E0000}'..='\u{E007F}'
        )
}
