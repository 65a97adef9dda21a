//! The tokens of VCL.

/// A token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) line: usize,
    pub(crate) kind: Kind,
    pub(crate) text: String,
}

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A name such as `req.http.X-A`, or a number with its unit.
    Word,
    /// A string, without its quotes.
    Text,
    /// An operator, a bracket or a separator.
    Sign,
}

/// Returns the tokens of a text.
///
/// # Errors
/// Returns the line of an error, and what is wrong.
pub(crate) fn tokens(text: &str) -> Result<Vec<Token>, (usize, String)> {
    let mut lexer = Lexer { rest: text.strip_prefix('\u{feff}').unwrap_or(text), line: 1 };
    let mut found = Vec::new();
    loop {
        match lexer.next() {
            Ok(Some(token)) => found.push(token),
            Ok(None) => return Ok(found),
            Err(message) => return Err((lexer.line, message)),
        }
    }
}

struct Lexer<'a> {
    rest: &'a str,
    line: usize,
}

impl Lexer<'_> {
    fn next(&mut self) -> Result<Option<Token>, String> {
        self.skip()?;
        let line = self.line;
        let token = |kind, text: &str| Some(Token { line, kind, text: text.to_owned() });
        let Some(first) = self.rest.chars().next() else { return Ok(None) };
        if let Some(inner) = self.rest.strip_prefix("{\"") {
            let end = inner.find("\"}").ok_or("a `{\"` without its `\"}`")?;
            let text = inner.get(..end).unwrap_or_default();
            self.advance(end + 4);
            return Ok(token(Kind::Text, text));
        }
        if self.rest.starts_with("C{") {
            let end = self.rest.find("}C").ok_or("a `C{` without its `}C`")?;
            self.advance(end + 2);
            return Ok(token(Kind::Word, "C{ }C"));
        }
        if first == '"' {
            let inner = self.rest.get(1..).unwrap_or_default();
            let end = inner
                .find(['"', '\n'])
                .filter(|end| inner.get(*end..).is_some_and(|end| end.starts_with('"')));
            let end = end.ok_or("a string without the quote that closes it")?;
            let text = inner.get(..end).unwrap_or_default();
            self.advance(end + 2);
            return Ok(token(Kind::Text, text));
        }
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | ':');
        if first.is_ascii_alphanumeric() || matches!(first, '.' | '_') {
            let end = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
            let text = self.rest.get(..end).unwrap_or_default();
            self.advance(end);
            return Ok(token(Kind::Word, text));
        }
        let double = ["==", "!=", "!~", "&&", "||", ">=", "<=", "+=", "*=", "-=", "++"];
        let sign = double.iter().find(|sign| self.rest.starts_with(**sign));
        let text = sign.map_or_else(|| first.to_string(), |sign| (*sign).to_owned());
        self.advance(text.len());
        Ok(token(Kind::Sign, &text))
    }

    /// Skips white space and comments.
    fn skip(&mut self) -> Result<(), String> {
        loop {
            let Some(first) = self.rest.chars().next() else { return Ok(()) };
            if first.is_whitespace() {
                self.advance(first.len_utf8());
            } else if first == '#' || self.rest.starts_with("//") {
                self.advance(self.rest.find('\n').unwrap_or(self.rest.len()));
            } else if self.rest.starts_with("/*") {
                let end = self.rest.find("*/").ok_or("a comment without its `*/`")?;
                self.advance(end + 2);
            } else {
                return Ok(());
            }
        }
    }

    fn advance(&mut self, bytes: usize) {
        let (skipped, rest) = self.rest.split_at_checked(bytes).unwrap_or((self.rest, ""));
        self.line += skipped.matches('\n').count();
        self.rest = rest;
    }
}

/// Returns tokens as a line.
pub(crate) fn line_of(tokens: &[Token]) -> String {
    let mut line = String::new();
    for (number, token) in tokens.iter().enumerate() {
        let tight = matches!(token.text.as_str(), ";" | "," | ")") && token.kind == Kind::Sign;
        let opened = number > 0
            && tokens
                .get(number - 1)
                .is_some_and(|before| matches!(before.text.as_str(), "(" | "!"));
        if number > 0 && !tight && !opened && token.text != "(" {
            line.push(' ');
        }
        match token.kind {
            Kind::Text => line.push_str(&format!("\"{}\"", token.text)),
            _ => line.push_str(&token.text),
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_skipped_and_lines_are_counted() {
        let found =
            tokens("# a\nset /* b\n */ req.http.X-A = {\"c\nd\"} + \"e\"; // f").expect("VCL");
        let texts: Vec<_> = found.iter().map(|token| (token.line, token.text.as_str())).collect();
        let expected =
            [(2, "set"), (3, "req.http.X-A"), (3, "="), (3, "c\nd"), (4, "+"), (4, "e"), (4, ";")];
        assert_eq!(texts, expected);
        assert_eq!(
            line_of(&tokens("return (synth(403, \"no\"));").expect("VCL")),
            "return(synth(403, \"no\"));"
        );
    }
}
