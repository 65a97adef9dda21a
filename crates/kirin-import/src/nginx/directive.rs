//! A directive of an nginx configuration.

use std::fmt::{self, Display, Formatter, Write as _};
use std::sync::Arc;

use crate::report::Place;

/// The longest text of a directive in a note, in characters.
const MAX_SHOWN: usize = 100;

/// A directive: its words, and its block if it has one.
#[derive(Debug, Clone)]
pub struct Directive {
    /// The number in the order of reading, by which notes know it. The entries of a `map` and of
    /// similar blocks have the number of the block.
    pub number: usize,
    /// The first word.
    pub name: String,
    /// The other words.
    pub args: Vec<String>,
    /// The content of the block.
    pub block: Option<Vec<Directive>>,
    /// The text of a block in another language, such as that of `content_by_lua_block`.
    pub foreign: Option<String>,
    /// The path of the file.
    pub file: Arc<str>,
    /// The line of the first word, counted from 1.
    pub line: usize,
}

impl Directive {
    /// Returns the word with this number behind the name, or an empty text.
    pub fn arg(&self, number: usize) -> &str {
        self.args.get(number).map_or("", String::as_str)
    }

    /// Returns whether the word behind the name is `on`.
    pub fn is_on(&self) -> bool {
        self.arg(0).eq_ignore_ascii_case("on")
    }

    /// Returns whether the word behind the name is `off`.
    pub fn is_off(&self) -> bool {
        self.arg(0).eq_ignore_ascii_case("off")
    }

    /// Returns the content of the block, which is empty if there is none.
    pub fn inside(&self) -> &[Directive] {
        self.block.as_deref().unwrap_or_default()
    }

    /// Returns the value of the word `KEY=VALUE`.
    pub fn option(&self, key: &str) -> Option<&str> {
        self.args.iter().find_map(|arg| arg.strip_prefix(key)?.strip_prefix('='))
    }

    /// Returns whether one of the words is this.
    pub fn has(&self, word: &str) -> bool {
        self.args.iter().any(|arg| arg == word)
    }

    /// Returns where it stands.
    pub fn place(&self) -> Place {
        Place { file: self.file.to_string(), line: self.line }
    }

    /// Returns file and line, for a comment.
    pub fn at(&self) -> String {
        format!("{}:{}", self.file, self.line)
    }

    /// Returns the directive on one line, without its block.
    pub fn shown(&self) -> String {
        let mut text = shown_word(&self.name);
        for arg in &self.args {
            text.push(' ');
            text.push_str(&shown_word(arg));
            if text.len() > 4 * MAX_SHOWN {
                break;
            }
        }
        if self.block.is_none() && self.foreign.is_none() {
            text.push(';');
        }
        match text.char_indices().nth(MAX_SHOWN) {
            Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
            None => text,
        }
    }
}

/// Returns a word as a person would write it, on one line.
fn shown_word(word: &str) -> String {
    if word.is_empty() || word.contains([' ', ';', '\t']) {
        return format!("\"{}\"", word.replace(['\n', '\r'], " ").replace('"', "\\\""));
    }
    word.replace(['\n', '\r'], " ")
}

/// Writes the directive so that the parser reads the same again.
impl Display for Directive {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&quoted(&self.name))?;
        for arg in &self.args {
            write!(f, " {}", quoted(arg))?;
        }
        if let Some(text) = &self.foreign {
            return writeln!(f, " {{{text}}}");
        }
        let Some(block) = &self.block else { return f.write_str(";\n") };
        f.write_str(" {\n")?;
        for directive in block {
            directive.fmt(f)?;
        }
        f.write_str("}\n")
    }
}

fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_./:-=@*~^$,+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    let mut text = String::from("\"");
    for c in word.chars() {
        match c {
            '"' | '\\' => {
                let _ = write!(text, "\\{c}");
            }
            c => text.push(c),
        }
    }
    text.push('"');
    text
}
