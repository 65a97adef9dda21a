//! The tokens of a Caddyfile.

use crate::text::VARIABLE;

/// A token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) line: usize,
    pub(crate) text: String,
    /// Whether it is in quotes, so that a brace is text.
    pub(crate) quoted: bool,
    /// Whether it is the first of its line.
    pub(crate) first: bool,
}

/// Returns the tokens of a text.
///
/// # Errors
/// Returns the line of an error, and what is wrong.
pub(crate) fn tokens(text: &str) -> Result<Vec<Token>, (usize, String)> {
    let text = with_variables(text.strip_prefix('\u{feff}').unwrap_or(text));
    let mut lexer = Lexer { rest: &text, line: 1, first: true, tokens: Vec::new() };
    while lexer.token().map_err(|message| (lexer.line, message))? {}
    Ok(lexer.tokens)
}

/// Writes `{$NAME}` and `{$NAME:default}` as variables of Kirin.
fn with_variables(text: &str) -> String {
    let mut written = String::new();
    let mut rest = text;
    while let Some(start) = rest.find("{$") {
        let (before, behind) = rest.split_at(start);
        written.push_str(before);
        let behind = behind.get(2..).unwrap_or_default();
        let line = behind.split('\n').next().unwrap_or_default();
        match line.split_once('}') {
            Some((variable, _)) => {
                let (name, default) = variable.split_once(':').unwrap_or((variable, ""));
                let default =
                    if default.is_empty() { String::new() } else { format!(":-{default}") };
                written.push_str(&format!("{VARIABLE}{{{name}{default}}}"));
                rest = behind.get(variable.len() + 1..).unwrap_or_default();
            }
            None => {
                written.push_str("{$");
                rest = behind;
            }
        }
    }
    written.push_str(rest);
    written
}

struct Lexer<'a> {
    rest: &'a str,
    line: usize,
    first: bool,
    tokens: Vec<Token>,
}

impl Lexer<'_> {
    /// Reads a token. Returns `false` at the end.
    fn token(&mut self) -> Result<bool, String> {
        self.skip();
        let Some(start) = self.rest.chars().next() else { return Ok(false) };
        let line = self.line;
        let (text, quoted) = match start {
            '"' => (self.quoted()?, true),
            '`' => (self.backquoted()?, true),
            _ if self.rest.starts_with("<<") => self.here_document()?,
            _ => (self.word(), false),
        };
        let first = std::mem::replace(&mut self.first, false);
        self.tokens.push(Token { line, text, quoted, first });
        Ok(true)
    }

    /// Skips white space, comments and line ends with a backslash.
    fn skip(&mut self) {
        loop {
            match self.rest.chars().next() {
                Some('\n') => {
                    self.line += 1;
                    self.first = true;
                    self.advance(1);
                }
                Some('#') => self.advance(self.rest.find('\n').unwrap_or(self.rest.len())),
                Some('\\') if self.rest.starts_with("\\\n") || self.rest.starts_with("\\\r\n") => {
                    self.line += 1;
                    self.advance(self.rest.find('\n').unwrap_or(0) + 1);
                }
                Some(character) if character.is_whitespace() => self.advance(character.len_utf8()),
                _ => return,
            }
        }
    }

    fn advance(&mut self, bytes: usize) {
        let skipped = self.rest.get(bytes..).unwrap_or_default();
        self.rest = skipped;
    }

    fn word(&mut self) -> String {
        let end = self.rest.find(char::is_whitespace).unwrap_or(self.rest.len());
        let word = self.rest.get(..end).unwrap_or_default().to_owned();
        self.advance(end);
        word
    }

    fn quoted(&mut self) -> Result<String, String> {
        let mut text = String::new();
        let mut characters = self.rest.char_indices().skip(1);
        while let Some((offset, character)) = characters.next() {
            match character {
                '"' => {
                    self.advance(offset + 1);
                    self.line += text.matches('\n').count();
                    return Ok(text);
                }
                '\\' => match characters.next() {
                    Some((_, '"')) => text.push('"'),
                    Some((_, next)) => text.extend(['\\', next]),
                    None => break,
                },
                _ => text.push(character),
            }
        }
        Err("a `\"` without the one that closes it".to_owned())
    }

    fn backquoted(&mut self) -> Result<String, String> {
        let behind = self.rest.get(1..).unwrap_or_default();
        let (text, _) =
            behind.split_once('`').ok_or("a backquote without the one that closes it")?;
        let text = text.to_owned();
        self.advance(text.len() + 2);
        self.line += text.matches('\n').count();
        Ok(text)
    }

    /// Reads `<<NAME`, lines of text, and `NAME`.
    fn here_document(&mut self) -> Result<(String, bool), String> {
        let line_end = self.rest.find('\n').unwrap_or(self.rest.len());
        let name = self.rest.get(2..line_end).unwrap_or_default().trim();
        let is_name = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
        if !is_name {
            return Ok((self.word(), false));
        }
        let name = name.to_owned();
        self.advance(line_end + 1);
        let mut lines = Vec::new();
        while !self.rest.is_empty() {
            self.line += 1;
            let end = self.rest.find('\n').unwrap_or(self.rest.len());
            let line = self.rest.get(..end).unwrap_or_default();
            let trimmed = line.trim_start();
            if trimmed
                .strip_prefix(name.as_str())
                .is_some_and(|behind| behind.chars().next().is_none_or(char::is_whitespace))
            {
                let indent = line.len() - trimmed.len();
                self.advance(indent + name.len());
                let text: Vec<_> = lines.iter().map(|line: &String| line.trim_start()).collect();
                return Ok((text.join("\n"), true));
            }
            lines.push(line.to_owned());
            self.advance(end + 1);
        }
        Err(format!("a text `<<{name}` without the line `{name}` that ends it"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<String> {
        tokens(text).expect(text).into_iter().map(|token| token.text).collect()
    }

    #[test]
    fn words_quotes_and_texts_are_tokens() {
        assert_eq!(texts("a \"b \\\" c\" `d\ne` # f\ng#h {"), ["a", "b \" c", "d\ne", "g#h", "{"]);
        assert_eq!(texts("a <<END\n  b\n  c\n  END 200"), ["a", "b\nc", "200"]);
        assert_eq!(texts("a \\\n b"), ["a", "b"]);
        assert_eq!(texts("{$A} {$B:c}"), ["\u{F8FF}{A}", "\u{F8FF}{B:-c}"]);
        let lines: Vec<_> = tokens("a\n\"b\nc\" d\ne").expect("tokens");
        let lines: Vec<_> = lines.iter().map(|token| (token.line, token.first)).collect();
        assert_eq!(lines, [(1, true), (2, true), (3, false), (4, true)]);
    }
}
