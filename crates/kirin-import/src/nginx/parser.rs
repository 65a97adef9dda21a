//! Parses the text of one file into directives.

use std::sync::Arc;

use super::directive::Directive;
use super::lexer::{Lexer, Token};

/// The most blocks inside each other.
pub const MAX_DEPTH: usize = 32;

/// Why a file cannot be read as an nginx configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntaxError {
    /// The path of the file.
    pub file: String,
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong.
    pub message: String,
}

impl std::fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.message)
    }
}

impl std::error::Error for SyntaxError {}

/// Parses `text`, the content of `file`. Includes stay directives.
pub fn parse(text: &str, file: &str) -> Result<Vec<Directive>, SyntaxError> {
    let name: Arc<str> = file.into();
    Parser { lexer: Lexer::new(text), file: name, open: Vec::new(), done: Vec::new() }
        .run()
        .map_err(|(line, message)| SyntaxError { file: file.to_owned(), line, message })
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    file: Arc<str>,
    /// The directives whose blocks are open, each with what stood before it in its own block.
    open: Vec<(Directive, Vec<Directive>)>,
    /// The directives of the innermost open block.
    done: Vec<Directive>,
}

impl Parser<'_> {
    fn run(mut self) -> Result<Vec<Directive>, (usize, String)> {
        let mut words: Vec<String> = Vec::new();
        let mut first_line = 1;
        while let Some((token, line)) = self.lexer.next()? {
            match token {
                Token::Word(word) => {
                    if words.is_empty() {
                        first_line = line;
                    }
                    words.push(word);
                }
                Token::Semicolon => {
                    let directive = self.directive(&mut words, first_line, line)?;
                    self.done.push(directive);
                }
                Token::Open => self.open_block(&mut words, first_line, line)?,
                Token::Close => self.close_block(&words, first_line, line)?,
            }
        }
        if let Some(word) = words.first() {
            return Err((first_line, format!("`{word}` has no `;` at its end")));
        }
        match self.open.pop() {
            Some((directive, _)) => {
                Err((directive.line, format!("the block of `{}` has no `}}`", directive.name)))
            }
            None => Ok(self.done),
        }
    }

    /// Takes the words of a directive.
    fn directive(
        &self,
        words: &mut Vec<String>,
        first_line: usize,
        line: usize,
    ) -> Result<Directive, (usize, String)> {
        let mut words = std::mem::take(words).into_iter();
        let Some(name) = words.next() else {
            return Err((line, "a directive is missing before this sign".into()));
        };
        Ok(Directive {
            number: 0,
            name,
            args: words.collect(),
            block: None,
            foreign: None,
            file: Arc::clone(&self.file),
            line: first_line,
        })
    }

    fn open_block(
        &mut self,
        words: &mut Vec<String>,
        first_line: usize,
        line: usize,
    ) -> Result<(), (usize, String)> {
        let mut directive = self.directive(words, first_line, line)?;
        if directive.name.ends_with("_by_lua_block") {
            directive.foreign = Some(self.lexer.foreign_block()?.to_owned());
            self.done.push(directive);
            return Ok(());
        }
        if self.open.len() >= MAX_DEPTH {
            return Err((line, format!("more than {MAX_DEPTH} blocks inside each other")));
        }
        let before = std::mem::take(&mut self.done);
        self.open.push((directive, before));
        Ok(())
    }

    fn close_block(
        &mut self,
        words: &[String],
        first_line: usize,
        line: usize,
    ) -> Result<(), (usize, String)> {
        if let Some(word) = words.first() {
            return Err((first_line, format!("`{word}` has no `;` at its end")));
        }
        let Some((mut directive, before)) = self.open.pop() else {
            return Err((line, "this `}` ends no block".into()));
        };
        directive.block = Some(std::mem::replace(&mut self.done, before));
        self.done.push(directive);
        Ok(())
    }
}

#[cfg(test)]
#[path = "parser_tests.rs"]
mod tests;
