//! A Caddyfile as directives with blocks, with snippets and other files in their places.

use std::collections::HashMap;

use crate::caddy::tokens::{Token, tokens};
use crate::error::ImportError;
use crate::files::Files;
use crate::report::Place;

/// The most blocks, and the most imports, inside each other.
const MOST_DEPTH: usize = 32;

/// The most tokens with all imports.
const MOST_TOKENS: usize = 500_000;

/// A directive, or the addresses of a site, with its block.
#[derive(Debug, Clone)]
pub(crate) struct Directive {
    pub(crate) place: Place,
    /// The name and the arguments.
    pub(crate) words: Vec<String>,
    pub(crate) block: Option<Vec<Directive>>,
}

impl Directive {
    /// Returns the name.
    pub(crate) fn name(&self) -> &str {
        self.words.first().map_or("", String::as_str)
    }

    /// Returns the arguments.
    pub(crate) fn arguments(&self) -> &[String] {
        self.words.get(1..).unwrap_or_default()
    }

    /// Returns an argument.
    pub(crate) fn argument(&self, number: usize) -> Option<&str> {
        self.arguments().get(number).map(String::as_str)
    }

    /// Returns the directives of the block.
    pub(crate) fn inner(&self) -> &[Directive] {
        self.block.as_deref().unwrap_or_default()
    }

    /// Returns the directive on one line, without its block.
    pub(crate) fn line(&self) -> String {
        self.words.join(" ")
    }
}

/// A token and the file that it stands in.
type Placed = (Token, usize);

/// Reads a Caddyfile. The directives at the top are the sites, and the global options have no
/// words.
///
/// # Errors
/// Returns an error if a file cannot be read or is malformed.
pub(crate) fn read(file: &str, files: &dyn Files) -> Result<Vec<Directive>, ImportError> {
    let mut reader =
        Reader { files, paths: Vec::new(), snippets: HashMap::new(), open: Vec::new(), count: 0 };
    let from = Place { file: file.to_owned(), line: 1 };
    let tokens = reader.file(file, &from)?;
    let (tokens, _) = reader.expanded(tokens)?;
    let mut parser = Parser { tokens: &tokens, position: 0, paths: &reader.paths, depth: 0 };
    parser.document()
}

struct Reader<'a> {
    files: &'a dyn Files,
    paths: Vec<String>,
    snippets: HashMap<String, Vec<Placed>>,
    /// What is being imported.
    open: Vec<String>,
    count: usize,
}

impl Reader<'_> {
    fn file(&mut self, path: &str, from: &Place) -> Result<Vec<Placed>, ImportError> {
        let text = self.files.read(path).map_err(|message| ImportError {
            place: from.clone(),
            message: format!("`{path}`: {message}"),
        })?;
        let number = self.paths.len();
        self.paths.push(path.to_owned());
        let found = tokens(&text).map_err(|(line, message)| ImportError {
            place: Place { file: path.to_owned(), line },
            message,
        })?;
        Ok(found.into_iter().map(|token| (token, number)).collect())
    }

    fn place(&self, (token, file): &Placed) -> Place {
        let file = self.paths.get(*file).cloned().unwrap_or_default();
        Place { file, line: token.line }
    }

    /// Takes out snippets, and puts what is imported in the place of `import`. Returns whether
    /// there was any.
    fn expanded(&mut self, tokens: Vec<Placed>) -> Result<(Vec<Placed>, bool), ImportError> {
        let mut written = Vec::new();
        let mut any = false;
        let mut depth = 0_usize;
        let mut position = 0;
        while let Some(token) = tokens.get(position) {
            let text = token.0.text.as_str();
            let bare = !token.0.quoted && token.0.first;
            if bare && text == "import" {
                any = true;
                let end = end_of_line(&tokens, position);
                let words = tokens.get(position + 1..end).unwrap_or_default().to_vec();
                written.extend(self.import(&words, token)?);
                position = end;
                continue;
            }
            let is_snippet = depth == 0 && bare && text.starts_with('(') && text.ends_with(')');
            if is_snippet && let Some(end) = end_of_block(&tokens, position + 1) {
                let body = tokens.get(position + 2..end).unwrap_or_default().to_vec();
                self.snippets.insert(text.trim_matches(['(', ')']).to_owned(), body);
                position = end + 1;
                continue;
            }
            depth = match text {
                "{" if !token.0.quoted => depth + 1,
                "}" if !token.0.quoted => depth.saturating_sub(1),
                _ => depth,
            };
            self.count += 1;
            if self.count > MOST_TOKENS {
                let message = format!("more than {MOST_TOKENS} words with all imports");
                return Err(ImportError { place: self.place(token), message });
            }
            written.push(token.clone());
            position += 1;
        }
        Ok((written, any))
    }

    /// Returns the tokens that stand in the place of an import.
    fn import(&mut self, words: &[Placed], at: &Placed) -> Result<Vec<Placed>, ImportError> {
        let place = self.place(at);
        let error = |message: String| ImportError { place: place.clone(), message };
        let Some((name, arguments)) = words.split_first() else {
            return Err(error("`import` without a snippet or a file".to_owned()));
        };
        let name = name.0.text.clone();
        if self.open.len() == MOST_DEPTH || self.open.contains(&name) {
            return Err(error(format!("`{name}` imports itself, or there are too many imports")));
        }
        let arguments: Vec<_> = arguments.iter().map(|(token, _)| token.text.as_str()).collect();
        let body = match self.snippets.get(&name) {
            Some(body) => body.iter().map(|token| with_arguments(token, &arguments)).collect(),
            None => self.files_of(&name, &place)?,
        };
        self.open.push(name);
        let (body, _) = self.expanded(body)?;
        self.open.pop();
        Ok(body)
    }

    fn files_of(&mut self, name: &str, place: &Place) -> Result<Vec<Placed>, ImportError> {
        let beside =
            place.file.rsplit_once('/').map(|(directory, _)| format!("{directory}/{name}"));
        let pattern = beside.filter(|_| !name.starts_with('/')).unwrap_or_else(|| name.to_owned());
        let found = self.files.matching(&pattern);
        if found.is_empty() && !name.contains('*') {
            let message = format!("`{name}` is neither a snippet nor a file");
            return Err(ImportError { place: place.clone(), message });
        }
        let mut tokens = Vec::new();
        for path in found {
            tokens.extend(self.file(&path, place)?);
        }
        Ok(tokens)
    }
}

/// Replaces `{args[0]}` and `{args.0}` in a token.
fn with_arguments((token, file): &Placed, arguments: &[&str]) -> Placed {
    let mut token = token.clone();
    if token.text.contains("{args") {
        for (number, argument) in arguments.iter().enumerate().take(64) {
            token.text = token.text.replace(&format!("{{args[{number}]}}"), argument);
            token.text = token.text.replace(&format!("{{args.{number}}}"), argument);
        }
        token.text = token.text.replace("{args[:]}", &arguments.join(" "));
    }
    (token, *file)
}

fn end_of_line(tokens: &[Placed], start: usize) -> usize {
    let behind = tokens.get(start + 1..).unwrap_or_default();
    let is_end = |(token, _): &Placed| token.first || (!token.quoted && token.text == "}");
    behind.iter().position(is_end).map_or(tokens.len(), |offset| start + 1 + offset)
}

/// Returns the position of the brace that closes the one at `start`.
fn end_of_block(tokens: &[Placed], start: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (offset, (token, _)) in tokens.iter().enumerate().skip(start) {
        match token.text.as_str() {
            "{" if !token.quoted => depth += 1,
            "}" if !token.quoted => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return (offset > start).then_some(offset);
        }
    }
    None
}

struct Parser<'a> {
    tokens: &'a [Placed],
    position: usize,
    paths: &'a [String],
    depth: usize,
}

impl Parser<'_> {
    /// Reads the complete file. Without braces it is a single site.
    fn document(&mut self) -> Result<Vec<Directive>, ImportError> {
        let mut found = Vec::new();
        while self.position < self.tokens.len() {
            let site = self.site(found.is_empty())?;
            found.push(site);
        }
        Ok(found)
    }

    /// Reads addresses, which may be on several lines if they end with a comma, and the block.
    fn site(&mut self, first: bool) -> Result<Directive, ImportError> {
        let place = self.place();
        let mut words: Vec<String> = Vec::new();
        while let Some((token, _)) = self.tokens.get(self.position) {
            if token.text == "{" && !token.quoted {
                self.position += 1;
                let block = Some(self.block(true)?);
                return Ok(Directive { place, words, block });
            }
            let continues = words.last().is_none_or(|word| word.ends_with(','));
            if token.first && !continues {
                break;
            }
            words.push(token.text.clone());
            self.position += 1;
        }
        if !first {
            let message = "a block `{ … }` must be behind the addresses of a site".to_owned();
            return Err(ImportError { place, message });
        }
        let block = Some(self.block(false)?);
        Ok(Directive { place, words, block })
    }

    /// Reads directives up to the brace that closes the block, or to the end of the file.
    fn block(&mut self, braced: bool) -> Result<Vec<Directive>, ImportError> {
        self.depth += 1;
        if self.depth > MOST_DEPTH {
            return Err(self.error(format!("more than {MOST_DEPTH} blocks inside each other")));
        }
        let mut found = Vec::new();
        loop {
            match self.tokens.get(self.position) {
                None if braced => return Err(self.error("a `{` without its `}`".to_owned())),
                None => break,
                Some((token, _)) if token.text == "}" && !token.quoted => {
                    if !braced {
                        return Err(self.error("a `}` without its `{`".to_owned()));
                    }
                    self.position += 1;
                    break;
                }
                Some(_) => found.push(self.directive()?),
            }
        }
        self.depth -= 1;
        Ok(found)
    }

    fn directive(&mut self) -> Result<Directive, ImportError> {
        let place = self.place();
        let mut directive = Directive { place, words: Vec::new(), block: None };
        while let Some((token, _)) = self.tokens.get(self.position) {
            if token.first && !directive.words.is_empty() {
                break;
            }
            match token.text.as_str() {
                "{" if !token.quoted => {
                    self.position += 1;
                    directive.block = Some(self.block(true)?);
                    break;
                }
                "}" if !token.quoted => break,
                text => directive.words.push(text.to_owned()),
            }
            self.position += 1;
        }
        Ok(directive)
    }

    fn place(&self) -> Place {
        let last = self.tokens.get(self.position).or(self.tokens.last());
        let (line, file) = last.map_or((1, 0), |(token, file)| (token.line, *file));
        Place { file: self.paths.get(file).cloned().unwrap_or_default(), line }
    }

    fn error(&self, message: String) -> ImportError {
        ImportError { place: self.place(), message }
    }
}
