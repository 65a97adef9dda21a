//! The source of a script with statements that count its work.
//!
//! LuaJIT calls no hook in compiled code. So the source itself counts: the body of each loop and of
//! each function begins with a statement that subtracts the body's length from a counter. If
//! nothing is left, it looks at the clock and at the memory (`look.rs`). A script that does not end
//! repeats a loop or calls functions, so it counts.
//!
//! The length of a body is its number of tokens, because an instruction has one token or more.
//! Tokens of an inner loop or function count there. A statement is on the line where it is put,
//! so all other lines keep their numbers.
//!
//! The source must be valid: Lua has compiled it before.

/// The name of the table whose first value is the work that is left.
const LEFT: &str = "_kirin_work_left";

/// The name of the function that looks at the clock and sets the work that is left.
const LOOK: &str = "_kirin_look";

/// Tokens that the condition behind `until` counts as. It belongs to the loop, and stands behind it
/// in the source.
const CONDITION_TOKENS: u32 = 16;

/// A block of the source that is not complete yet.
struct Block {
    kind: BlockKind,
    /// The index of the loop or function that its tokens count for.
    body: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum BlockKind {
    /// A function before the `)` behind its parameters.
    Parameters,
    /// A loop before its `do`.
    LoopHead,
    /// A block behind these, and any other block.
    Statements,
}

/// Returns the source of a function that returns the script as a function. It takes the counter and
/// the function that looks at the clock.
pub(crate) fn counted(source: &[u8]) -> Vec<u8> {
    let mut tokens = vec![0_u32];
    let mut blocks = vec![Block { kind: BlockKind::Statements, body: 0 }];
    let mut counting = Vec::new();
    let mut scanner = Scanner { source, at: 0 };
    let mut before: &[u8] = b"";
    while let Some(token) = scanner.next() {
        let (kind, body) =
            blocks.last().map_or((BlockKind::Statements, 0), |block| (block.kind, block.body));
        let mut open = |kind, count| {
            tokens.push(count);
            blocks.push(Block { kind, body: tokens.len() - 1 });
        };
        match token {
            b"function" => open(BlockKind::Parameters, 0),
            b"while" | b"for" => open(BlockKind::LoopHead, 0),
            b"repeat" => {
                open(BlockKind::Statements, CONDITION_TOKENS);
                counting.push((scanner.at, tokens.len() - 1));
            }
            b")" if kind == BlockKind::Parameters => {
                begin_statements(&mut blocks);
                counting.push((scanner.at, body));
            }
            b"do" if kind == BlockKind::LoopHead => {
                begin_statements(&mut blocks);
                counting.push((scanner.at, body));
            }
            b"do" | b"if" => blocks.push(Block { kind: BlockKind::Statements, body }),
            b"end" | b"until" => drop(blocks.pop()),
            // A loop by `goto` counts where it jumps. In Lua 5.1 `goto` may also be a name.
            b"goto" if ends_statement(before) && scanner.is_before_name() => {
                counting.push((scanner.at - token.len(), body));
            }
            _ => {}
        }
        if let Some(count) = blocks.last().and_then(|block| tokens.get_mut(block.body)) {
            *count = count.saturating_add(1);
        }
        before = token;
    }
    with_counting(source, &counting, &tokens)
}

fn begin_statements(blocks: &mut [Block]) {
    if let Some(block) = blocks.last_mut() {
        block.kind = BlockKind::Statements;
    }
}

/// Returns whether a statement can begin behind a token.
fn ends_statement(token: &[u8]) -> bool {
    match token {
        b"::" => true,
        b"and" | b"or" | b"not" | b"in" | b"local" | b"return" | b"if" | b"elseif" | b"while"
        | b"until" | b"function" => false,
        [] | [b')' | b']' | b'}' | b';' | b'"' | b'\''] => true,
        [first, ..] => is_word(*first) || token.len() > 1,
    }
}

/// Puts the statements into the source.
fn with_counting(source: &[u8], counting: &[(usize, usize)], tokens: &[u32]) -> Vec<u8> {
    let mut out = format!("local {LEFT},{LOOK}=... return function(...) ").into_bytes();
    // Lua skips a first line that begins with `#`.
    if source.first() == Some(&b'#') {
        out.extend_from_slice(b"--");
    }
    let mut copied = 0;
    for &(at, body) in counting {
        out.extend_from_slice(&source[copied..at]);
        let count = tokens.get(body).copied().unwrap_or(u32::MAX);
        let statement = format!(" {LEFT}[1]={LEFT}[1]-{count} if {LEFT}[1]<0 then {LOOK}()end ");
        out.extend_from_slice(statement.as_bytes());
        copied = at;
    }
    out.extend_from_slice(&source[copied..]);
    out.extend_from_slice(b"\nend");
    out
}

/// Reads tokens: words with numbers, texts in quotes or brackets, `::`, and single other bytes.
struct Scanner<'a> {
    source: &'a [u8],
    at: usize,
}

impl<'a> Scanner<'a> {
    /// Returns the next token.
    fn next(&mut self) -> Option<&'a [u8]> {
        self.skip_space();
        let rest = self.rest();
        let length = match *rest.first()? {
            quote @ (b'"' | b'\'') => quoted(rest, quote),
            b'[' => long_text(rest).unwrap_or(1),
            b':' if rest.get(1) == Some(&b':') => 2,
            byte if is_word(byte) => rest.iter().take_while(|byte| is_word(**byte)).count(),
            _ => 1,
        };
        self.at += length;
        Some(&rest[..length])
    }

    fn rest(&self) -> &'a [u8] {
        &self.source[self.at..]
    }

    /// Skips white space and comments.
    fn skip_space(&mut self) {
        if self.at == 0 && self.source.first() == Some(&b'#') {
            self.at = line(self.source);
        }
        loop {
            let rest = self.rest();
            self.at += match rest {
                [b'-', b'-', comment @ ..] => {
                    2 + long_text(comment).unwrap_or_else(|| line(comment))
                }
                // LuaJIT's white space has the vertical tab, too.
                [byte, ..] if byte.is_ascii_whitespace() || *byte == 0x0b => 1,
                _ => return,
            };
        }
    }

    /// Returns whether a name follows.
    fn is_before_name(&self) -> bool {
        let mut ahead = Scanner { source: self.source, at: self.at };
        ahead.next().is_some_and(|token| {
            !token[0].is_ascii_digit() && is_word(token[0]) && !KEYWORDS.contains(&token)
        })
    }
}

const KEYWORDS: [&[u8]; 21] = [
    b"and",
    b"break",
    b"do",
    b"else",
    b"elseif",
    b"end",
    b"false",
    b"for",
    b"function",
    b"if",
    b"in",
    b"local",
    b"nil",
    b"not",
    b"or",
    b"repeat",
    b"return",
    b"then",
    b"true",
    b"until",
    b"while",
];

/// Returns whether a byte is part of a name, a keyword or a number. LuaJIT takes all bytes above
/// ASCII for letters.
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

/// Returns the length up to the end of the line.
fn line(text: &[u8]) -> usize {
    memchr::memchr2(b'\n', b'\r', text).unwrap_or(text.len())
}

/// Returns the length of a text in quotes.
fn quoted(text: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while let Some(found) = memchr::memchr2(b'\\', quote, text.get(at..).unwrap_or_default()) {
        at += found + 1;
        if text[at - 1] == quote {
            return at;
        }
        at += 1;
    }
    text.len()
}

/// Returns the length of a text in long brackets: `[[…]]`, `[=[…]=]`.
fn long_text(text: &[u8]) -> Option<usize> {
    let level = text.get(1..)?.iter().take_while(|byte| **byte == b'=').count();
    if text[0] != b'[' || text.get(level + 1) != Some(&b'[') {
        return None;
    }
    let end = [b"]".as_slice(), &text[1..=level], b"]"].concat();
    let found = memchr::memmem::find(&text[level + 2..], &end);
    Some(found.map_or(text.len(), |at| level + 2 + at + end.len()))
}

#[cfg(test)]
#[path = "counted_source_tests.rs"]
mod tests;
