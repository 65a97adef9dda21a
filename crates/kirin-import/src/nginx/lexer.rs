//! The tokens of an nginx configuration.
//!
//! nginx has few rules: words with spaces between them, `;`, `{` and `}`, comments from `#` to the
//! end of the line, and two kinds of quotes. A word may have `${name}`.

/// A token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Token {
    /// A word, without its quotes and with its escapes replaced.
    Word(String),
    /// `;`.
    Semicolon,
    /// `{`.
    Open,
    /// `}`.
    Close,
}

/// Reads tokens one after the other.
#[derive(Debug)]
pub struct Lexer<'a> {
    rest: &'a str,
    line: usize,
}

impl<'a> Lexer<'a> {
    /// Returns the tokens of `text`.
    pub fn new(text: &'a str) -> Self {
        Self { rest: text.strip_prefix('\u{feff}').unwrap_or(text), line: 1 }
    }

    /// Returns the next token and its line. Returns `None` at the end. An error has its line.
    pub fn next(&mut self) -> Result<Option<(Token, usize)>, (usize, String)> {
        self.skip_space();
        let line = self.line;
        let Some(first) = self.rest.chars().next() else { return Ok(None) };
        let token = match first {
            ';' => self.one(Token::Semicolon),
            '{' => self.one(Token::Open),
            '}' => self.one(Token::Close),
            '"' | '\'' => Token::Word(self.quoted(first)?),
            _ => Token::Word(self.word()),
        };
        Ok(Some((token, line)))
    }

    /// Returns the text up to the `}` that ends the block whose `{` was the last token. The text is
    /// a program in another language, such as Lua.
    pub fn foreign_block(&mut self) -> Result<&'a str, (usize, String)> {
        let (start, mut depth) = (self.rest, 1_usize);
        for (at, byte) in start.bytes().enumerate() {
            match byte {
                b'{' => depth += 1,
                b'}' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                let text = start.get(..at).unwrap_or_default();
                self.advance(at + 1);
                return Ok(text);
            }
        }
        Err((self.line, "the block that begins here has no `}`".into()))
    }

    fn one(&mut self, token: Token) -> Token {
        self.advance(1);
        token
    }

    /// Moves `count` bytes on, which end between two characters.
    fn advance(&mut self, count: usize) {
        let (passed, rest) = self.rest.split_at_checked(count).unwrap_or((self.rest, ""));
        self.line += passed.bytes().filter(|byte| *byte == b'\n').count();
        self.rest = rest;
    }

    /// Skips white space and comments.
    fn skip_space(&mut self) {
        loop {
            let spaces = self.rest.len() - self.rest.trim_start_matches(is_space).len();
            self.advance(spaces);
            if !self.rest.starts_with('#') {
                return;
            }
            self.advance(self.rest.find('\n').unwrap_or(self.rest.len()));
        }
    }

    /// Reads a word without quotes.
    fn word(&mut self) -> String {
        let mut word = String::new();
        let (mut chars, mut count) = (self.rest.chars(), 0);
        let mut previous = ' ';
        while let Some(c) = chars.next() {
            match c {
                '\\' => {
                    let escaped = chars.next();
                    count += 1 + escaped.map_or(0, char::len_utf8);
                    push_escaped(&mut word, escaped);
                    previous = ' ';
                    continue;
                }
                '{' if previous == '$' => {}
                c if is_space(c) || c == ';' || c == '{' => break,
                _ => {}
            }
            word.push(c);
            count += c.len_utf8();
            previous = c;
        }
        self.advance(count);
        word
    }

    /// Reads a word in quotes.
    fn quoted(&mut self, quote: char) -> Result<String, (usize, String)> {
        let mut word = String::new();
        let mut chars = self.rest.chars();
        chars.next();
        let mut count = 1;
        while let Some(c) = chars.next() {
            count += c.len_utf8();
            match c {
                '\\' => {
                    let escaped = chars.next();
                    count += escaped.map_or(0, char::len_utf8);
                    push_escaped(&mut word, escaped);
                }
                c if c == quote => {
                    self.advance(count);
                    return self.after_quote(quote).map(|()| word);
                }
                c => word.push(c),
            }
        }
        Err((self.line, format!("the quote {quote} that begins here has no end")))
    }

    /// Checks what follows the end of a quoted word.
    fn after_quote(&self, quote: char) -> Result<(), (usize, String)> {
        match self.rest.chars().next() {
            None | Some(';' | '{' | ')') => Ok(()),
            Some(c) if is_space(c) => Ok(()),
            Some(c) => Err((
                self.line,
                format!("`{c}` follows a closing {quote}: a space or `;` must stand between them"),
            )),
        }
    }
}

/// Adds what stands for a backslash and the character behind it.
fn push_escaped(word: &mut String, escaped: Option<char>) {
    match escaped {
        Some(c @ ('"' | '\'' | '\\')) => word.push(c),
        Some('t') => word.push('\t'),
        Some('r') => word.push('\r'),
        Some('n') => word.push('\n'),
        other => {
            word.push('\\');
            word.extend(other);
        }
    }
}

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n')
}
