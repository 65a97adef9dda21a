//! Writes lines of TOML and comments of bounded width.

/// The widest comment, in characters.
const COLUMNS: usize = 90;

/// A TOML file that is being written.
#[derive(Debug, Default)]
pub(super) struct TomlText {
    text: String,
}

impl TomlText {
    /// Writes a comment, on as many lines as it needs.
    pub(super) fn comment(&mut self, comment: &str) {
        self.wrapped("", comment);
    }

    /// Writes a comment in a list.
    pub(super) fn comment_inside(&mut self, comment: &str) {
        self.wrapped("    ", comment);
    }

    /// Writes a setting.
    pub(super) fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// Writes a setting that is off.
    pub(super) fn off(&mut self, line: &str) {
        self.line(&format!("#{line}"));
    }

    /// Writes an entry of a list that is off.
    pub(super) fn off_inside(&mut self, line: &str) {
        self.line(&format!("    #{line}"));
    }

    /// Writes an empty line.
    pub(super) fn blank(&mut self) {
        self.text.push('\n');
    }

    /// Returns the file.
    pub(super) fn finish(self) -> String {
        self.text
    }

    fn wrapped(&mut self, indent: &str, comment: &str) {
        let mut line = format!("{indent}#");
        let empty = line.chars().count();
        let mut width = empty;
        for word in comment.split_whitespace() {
            let word_width = word.chars().count() + 1;
            if width > empty && width + word_width > COLUMNS {
                self.line(&line);
                line.truncate(empty);
                width = empty;
            }
            line.push(' ');
            line.push_str(word);
            width += word_width;
        }
        self.line(&line);
    }
}

/// Returns `text` as a TOML string on one line, in which no variable is replaced.
pub(super) fn quoted(text: &str) -> String {
    toml::Value::String(literal(text)).to_string()
}

/// Returns `text` as a configuration writes it: `${` stands for a variable there.
fn literal(text: &str) -> String {
    text.replace("${", "$${")
}
