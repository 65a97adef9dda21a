//! JSON with the line of each value, and with the comments that Unit allows.
//!
//! `serde_json` has neither lines nor comments.

use std::iter::Peekable;
use std::str::CharIndices;

/// The most objects and lists inside each other.
const MOST_DEPTH: usize = 64;

/// A value and the line where it begins.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node {
    pub(crate) line: usize,
    pub(crate) value: Json,
}

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Json {
    Null,
    Bool(bool),
    Number(f64),
    Text(String),
    List(Vec<Node>),
    Object(Vec<Entry>),
}

/// A key of an object with its value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    pub(crate) key: String,
    /// The line of the key.
    pub(crate) line: usize,
    pub(crate) node: Node,
}

impl Node {
    /// Returns the text of a string.
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.value {
            Json::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns a number that is not negative and has no fraction.
    pub(crate) fn count(&self) -> Option<u64> {
        match self.value {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            Json::Number(number) if (0.0..1e15).contains(&number) && number.fract() == 0.0 => {
                Some(number as u64)
            }
            _ => None,
        }
    }

    /// Returns the entries of an object. Any other value has none.
    pub(crate) fn entries(&self) -> &[Entry] {
        match &self.value {
            Json::Object(entries) => entries,
            _ => &[],
        }
    }

    /// Returns the value of a key of an object.
    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        self.entries().iter().find(|entry| entry.key == key).map(|entry| &entry.node)
    }

    /// Returns the elements of a list, or the value itself if it is no list.
    pub(crate) fn elements(&self) -> &[Node] {
        match &self.value {
            Json::List(list) => list,
            _ => std::slice::from_ref(self),
        }
    }

    /// Returns the value in short, for a note.
    pub(crate) fn summary(&self) -> String {
        match &self.value {
            Json::Null => "null".to_owned(),
            Json::Bool(value) => value.to_string(),
            Json::Number(number) => number.to_string(),
            Json::Text(text) => format!("\"{text}\""),
            Json::List(list) => match list.as_slice() {
                [only] => format!("[{}]", only.summary()),
                _ => "[…]".to_owned(),
            },
            Json::Object(_) => "{…}".to_owned(),
        }
    }
}

/// Parses a text.
///
/// # Errors
/// Returns the line of the first error, and what is wrong.
pub(crate) fn parse(text: &str) -> Result<Node, (usize, String)> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut parser = Parser { text, characters: text.char_indices().peekable(), line: 1, depth: 0 };
    let parsed = parser.document();
    parsed.map_err(|message| (parser.line, message))
}

struct Parser<'a> {
    text: &'a str,
    characters: Peekable<CharIndices<'a>>,
    line: usize,
    depth: usize,
}

impl Parser<'_> {
    fn document(&mut self) -> Result<Node, String> {
        let node = self.value()?;
        self.skip_white_space()?;
        match self.peek() {
            None => Ok(node),
            Some(found) => Err(format!("`{found}` behind the end of the configuration")),
        }
    }

    fn value(&mut self) -> Result<Node, String> {
        self.skip_white_space()?;
        let line = self.line;
        let value = match self.peek() {
            Some('{') => self.nested(Self::object)?,
            Some('[') => self.nested(Self::list)?,
            Some('"') => Json::Text(self.string()?),
            Some(c) if c.is_ascii_alphanumeric() || c == '-' => self.word()?,
            found => return Err(expected("a value", found)),
        };
        Ok(Node { line, value })
    }

    fn nested(&mut self, parse: fn(&mut Self) -> Result<Json, String>) -> Result<Json, String> {
        self.depth += 1;
        if self.depth > MOST_DEPTH {
            return Err(format!("more than {MOST_DEPTH} objects and lists inside each other"));
        }
        self.next();
        let value = parse(self);
        self.depth -= 1;
        value
    }

    fn object(&mut self) -> Result<Json, String> {
        let mut entries = Vec::new();
        loop {
            self.skip_white_space()?;
            match self.peek() {
                Some('}') if entries.is_empty() => break,
                Some('"') => {}
                found => return Err(expected("a key in double quotes", found)),
            }
            let line = self.line;
            let key = self.string()?;
            self.skip_white_space()?;
            match self.next() {
                Some(':') => {}
                found => return Err(expected("a colon behind the key", found)),
            }
            entries.push(Entry { key, line, node: self.value()? });
            self.skip_white_space()?;
            match self.peek() {
                Some(',') => drop(self.next()),
                Some('}') => break,
                found => return Err(expected("a comma or `}`", found)),
            }
        }
        self.next();
        Ok(Json::Object(entries))
    }

    fn list(&mut self) -> Result<Json, String> {
        let mut list = Vec::new();
        loop {
            self.skip_white_space()?;
            if self.peek() == Some(']') && list.is_empty() {
                break;
            }
            list.push(self.value()?);
            self.skip_white_space()?;
            match self.peek() {
                Some(',') => drop(self.next()),
                Some(']') => break,
                found => return Err(expected("a comma or `]`", found)),
            }
        }
        self.next();
        Ok(Json::List(list))
    }

    fn string(&mut self) -> Result<String, String> {
        self.next();
        let mut text = String::new();
        loop {
            match self.next() {
                Some('"') => return Ok(text),
                Some('\\') => text.push(self.escape()?),
                Some('\n') | None => return Err("a string without its closing quote".to_owned()),
                Some(character) => text.push(character),
            }
        }
    }

    fn escape(&mut self) -> Result<char, String> {
        let escaped = match self.next() {
            Some('n') => '\n',
            Some('t') => '\t',
            Some('r') => '\r',
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some(c @ ('"' | '\\' | '/')) => c,
            Some('u') => {
                let high = self.hexadecimal()?;
                return self.code_point(high);
            }
            found => return Err(expected("a letter of an escape behind `\\`", found)),
        };
        Ok(escaped)
    }

    fn code_point(&mut self, high: u32) -> Result<char, String> {
        let mut code = high;
        if (0xD800..0xDC00).contains(&high) {
            let follows = self.next() == Some('\\') && self.next() == Some('u');
            let low = if follows { self.hexadecimal()? } else { 0 };
            if !(0xDC00..0xE000).contains(&low) {
                return Err("half a character in `\\u`".to_owned());
            }
            code = 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
        }
        char::from_u32(code).ok_or_else(|| "half a character in `\\u`".to_owned())
    }

    fn hexadecimal(&mut self) -> Result<u32, String> {
        let mut code = 0;
        for _ in 0..4 {
            let found = self.next();
            let digit = found.and_then(|character| character.to_digit(16));
            code = code * 16 + digit.ok_or_else(|| expected("a hexadecimal digit", found))?;
        }
        Ok(code)
    }

    fn word(&mut self) -> Result<Json, String> {
        let start = self.offset();
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '+' | '.');
        while self.peek().is_some_and(is_part) {
            self.next();
        }
        let word = self.text.get(start..self.offset()).unwrap_or_default();
        match word {
            "true" => Ok(Json::Bool(true)),
            "false" => Ok(Json::Bool(false)),
            "null" => Ok(Json::Null),
            _ => {
                let number = word.parse().ok().filter(|number: &f64| number.is_finite());
                let is_number = !word.starts_with(|c: char| c.is_ascii_alphabetic());
                let number = number.filter(|_| is_number).map(Json::Number);
                number.ok_or_else(|| format!("`{word}` is no value"))
            }
        }
    }

    fn skip_white_space(&mut self) -> Result<(), String> {
        loop {
            match self.peek() {
                Some(' ' | '\t' | '\r' | '\n') => drop(self.next()),
                Some('/') => self.skip_comment()?,
                _ => return Ok(()),
            }
        }
    }

    fn skip_comment(&mut self) -> Result<(), String> {
        self.next();
        match self.next() {
            Some('/') => {
                while self.peek().is_some_and(|c| c != '\n') {
                    self.next();
                }
                Ok(())
            }
            Some('*') => {
                let mut star = false;
                while let Some(character) = self.next() {
                    if star && character == '/' {
                        return Ok(());
                    }
                    star = character == '*';
                }
                Err("a comment without its `*/`".to_owned())
            }
            found => Err(expected("`//` or `/*`", found)),
        }
    }

    fn peek(&mut self) -> Option<char> {
        self.characters.peek().map(|(_, character)| *character)
    }

    fn next(&mut self) -> Option<char> {
        let character = self.characters.next().map(|(_, character)| character)?;
        if character == '\n' {
            self.line += 1;
        }
        Some(character)
    }

    fn offset(&mut self) -> usize {
        self.characters.peek().map_or(self.text.len(), |(offset, _)| *offset)
    }
}

fn expected(what: &str, found: Option<char>) -> String {
    match found {
        Some(found) => format!("`{}` where {what} should be", found.escape_debug()),
        None => format!("the text ends where {what} should be"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_its_line() {
        let node = parse("{ // a\n/* b\n */ \"a\\u00e9\": [1,\n {\"b\": null}]}").expect("JSON");
        let entry = &node.entries()[0];
        assert_eq!((entry.key.as_str(), entry.line), ("aé", 3));
        assert_eq!(entry.node.elements()[1].line, 4);
    }

    #[test]
    fn an_error_names_its_line() {
        for (text, line, message) in [
            ("{\n\"a\" 1}", 2, "`1` where a colon behind the key should be"),
            ("{\"a\": tru}", 1, "`tru` is no value"),
            ("{\"a\": 1,}", 1, "`}` where a key in double quotes should be"),
            ("[1\n", 2, "the text ends where a comma or `]` should be"),
            ("\"\\ud800\"", 1, "half a character in `\\u`"),
            ("{} x", 1, "`x` behind the end of the configuration"),
        ] {
            assert_eq!(parse(text), Err((line, message.to_owned())), "{text}");
        }
        assert!(parse(&"[".repeat(100_000)).is_err());
    }
}
