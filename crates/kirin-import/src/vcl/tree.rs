//! VCL as declarations and statements, with other files in their places.

use crate::error::ImportError;
use crate::files::Files;
use crate::report::Place;
use crate::vcl::tokens::{Token, line_of, tokens};

/// The most blocks, and the most files, inside each other.
const MOST_DEPTH: usize = 32;

/// A declaration: a name, and a block.
#[derive(Debug, Clone)]
pub(crate) struct Declaration {
    pub(crate) place: Place,
    /// The words before the block, such as `sub` and `vcl_recv`.
    pub(crate) words: Vec<Token>,
    pub(crate) body: Vec<Statement>,
}

/// A statement.
#[derive(Debug, Clone)]
pub(crate) struct Statement {
    pub(crate) place: Place,
    pub(crate) kind: StatementKind,
}

/// A branch of an `if`: its condition, and its block.
pub(crate) type Branch = (Vec<Token>, Vec<Statement>);

/// What a statement is.
#[derive(Debug, Clone)]
pub(crate) enum StatementKind {
    /// The tokens up to a semicolon.
    Simple(Vec<Token>),
    /// Words with a block, such as `.probe = { … }`.
    Block(Vec<Token>, Vec<Statement>),
    /// `if`, with its branches. The last one has no condition if there is an `else`.
    If(Vec<Branch>),
}

impl Declaration {
    /// Returns a word.
    pub(crate) fn word(&self, number: usize) -> &str {
        self.words.get(number).map_or("", |token| token.text.as_str())
    }
}

impl Statement {
    /// Returns the statement on one line, without its block.
    pub(crate) fn line(&self) -> String {
        match &self.kind {
            StatementKind::Simple(tokens) => format!("{};", line_of(tokens)),
            StatementKind::Block(tokens, _) => line_of(tokens),
            StatementKind::If(branches) => {
                let condition = branches.first().map(|(condition, _)| line_of(condition));
                format!("if ({})", condition.unwrap_or_default())
            }
        }
    }
}

/// Reads a file and those that it includes.
///
/// # Errors
/// Returns an error if a file cannot be read or is malformed.
pub(crate) fn read(file: &str, files: &dyn Files) -> Result<Vec<Declaration>, ImportError> {
    let mut open = Vec::new();
    declarations(file, files, &Place { file: file.to_owned(), line: 1 }, &mut open)
}

fn declarations(
    file: &str,
    files: &dyn Files,
    from: &Place,
    open: &mut Vec<String>,
) -> Result<Vec<Declaration>, ImportError> {
    let error = |message| ImportError { place: from.clone(), message };
    if open.iter().any(|path| path == file) || open.len() == MOST_DEPTH {
        return Err(error(format!("`{file}` includes itself, or too many files do")));
    }
    let text = files.read(file).map_err(|message| error(format!("`{file}`: {message}")))?;
    let found = tokens(&text).map_err(|(line, message)| ImportError {
        place: Place { file: file.to_owned(), line },
        message,
    })?;
    open.push(file.to_owned());
    let mut parser = Parser { tokens: &found, position: 0, file, depth: 0 };
    let mut declared = Vec::new();
    while let Some(token) = parser.tokens.get(parser.position) {
        let place = parser.place();
        let include = token.text == "include";
        let declaration = parser.declaration()?;
        if !include {
            declared.push(declaration);
            continue;
        }
        let name = declaration.word(1);
        let beside = file.rsplit_once('/').map(|(directory, _)| format!("{directory}/{name}"));
        let path = beside.filter(|_| !name.starts_with('/')).unwrap_or_else(|| name.to_owned());
        declared.extend(declarations(&path, files, &place, open)?);
    }
    open.pop();
    Ok(declared)
}

struct Parser<'a> {
    tokens: &'a [Token],
    position: usize,
    file: &'a str,
    depth: usize,
}

impl Parser<'_> {
    /// Reads words up to a semicolon or a block.
    fn declaration(&mut self) -> Result<Declaration, ImportError> {
        let place = self.place();
        let mut words = Vec::new();
        loop {
            let Some(token) = self.next() else {
                return Err(self.error("the file ends inside of a declaration"));
            };
            match token.text.as_str() {
                "{" => return Ok(Declaration { place, words, body: self.block()? }),
                ";" => return Ok(Declaration { place, words, body: Vec::new() }),
                "}" => return Err(self.error("a `}` without its `{`")),
                _ => words.push(token),
            }
        }
    }

    fn block(&mut self) -> Result<Vec<Statement>, ImportError> {
        self.depth += 1;
        if self.depth > MOST_DEPTH {
            return Err(self.error("too many blocks inside each other"));
        }
        let mut found = Vec::new();
        loop {
            match self.peek() {
                None => return Err(self.error("a `{` without its `}`")),
                Some("}") => {
                    self.position += 1;
                    break;
                }
                Some(";") => self.position += 1,
                Some(_) => found.push(self.statement()?),
            }
        }
        self.depth -= 1;
        Ok(found)
    }

    fn statement(&mut self) -> Result<Statement, ImportError> {
        let place = self.place();
        if self.peek() == Some("if") {
            self.position += 1;
            let kind = StatementKind::If(self.branches()?);
            return Ok(Statement { place, kind });
        }
        let mut words = Vec::new();
        loop {
            let Some(token) = self.next() else {
                return Err(self.error("the file ends inside of a statement"));
            };
            match token.text.as_str() {
                ";" => return Ok(Statement { place, kind: StatementKind::Simple(words) }),
                "{" => {
                    let kind = StatementKind::Block(words, self.block()?);
                    return Ok(Statement { place, kind });
                }
                "}" => return Err(self.error("a `;` is missing before `}`")),
                _ => words.push(token),
            }
        }
    }

    /// Reads the branches of an `if`, behind that word.
    fn branches(&mut self) -> Result<Vec<Branch>, ImportError> {
        let mut branches = vec![self.branch()?];
        loop {
            match self.peek() {
                Some("elseif" | "elsif" | "elif") => {
                    self.position += 1;
                    branches.push(self.branch()?);
                }
                Some("else") => {
                    self.position += 1;
                    if self.peek() == Some("if") {
                        self.position += 1;
                        branches.push(self.branch()?);
                        continue;
                    }
                    self.expect("{")?;
                    branches.push((Vec::new(), self.block()?));
                    return Ok(branches);
                }
                _ => return Ok(branches),
            }
        }
    }

    fn branch(&mut self) -> Result<Branch, ImportError> {
        self.expect("(")?;
        let mut condition = Vec::new();
        let mut depth = 1_usize;
        loop {
            let Some(token) = self.next() else {
                return Err(self.error("the file ends inside of a condition"));
            };
            match token.text.as_str() {
                "(" => depth += 1,
                ")" => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                break;
            }
            condition.push(token);
        }
        self.expect("{")?;
        Ok((condition, self.block()?))
    }

    fn expect(&mut self, sign: &str) -> Result<(), ImportError> {
        match self.next() {
            Some(token) if token.text == sign => Ok(()),
            _ => Err(self.error(&format!("a `{sign}` is missing"))),
        }
    }

    fn peek(&self) -> Option<&str> {
        self.tokens.get(self.position).map(|token| token.text.as_str())
    }

    fn next(&mut self) -> Option<Token> {
        let token = self.tokens.get(self.position).cloned();
        self.position += 1;
        token
    }

    fn place(&self) -> Place {
        let token = self.tokens.get(self.position).or(self.tokens.last());
        Place { file: self.file.to_owned(), line: token.map_or(1, |token| token.line) }
    }

    fn error(&self, message: &str) -> ImportError {
        ImportError { place: self.place(), message: message.to_owned() }
    }
}
