//! Lua's patterns (Lua 5.1 manual, section 5.4.1), matched in steps that the caller counts.
//!
//! Lua's own matcher is C code that no hook interrupts. A pattern such as `a-a-a-a-b` can keep it
//! busy for years. This matcher asks before each step whether it may continue. It reports the work
//! of the step, because comparing a byte with a large set takes time in proportion to the set. The
//! module is pure: bytes in, positions out.

/// The most captures of a pattern, as in Lua.
const MAX_CAPTURES: usize = 32;

/// The deepest nesting of the matcher. Each repetition or capture in a pattern is one level, as in
/// Lua 5.4 (MAXCCALLS).
const MAX_DEPTH: u32 = 200;

/// Members of a set that are compared, or skipped, for one unit of work.
const SET_MEMBERS: usize = 4;

/// Bytes of a capture that are compared for one unit of work.
const COMPARED_BYTES: usize = 16;

/// The reason why a search ended without a result.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SearchError<E> {
    /// The pattern is malformed.
    Malformed(&'static str),
    /// The caller has stopped the search.
    Stopped(E),
}

/// The value of a capture: bytes of the subject, or, for `()`, a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Capture {
    Bytes { start: usize, end: usize },
    Position(usize),
}

/// A match.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Match {
    pub start: usize,
    pub end: usize,
    pub captures: Vec<Capture>,
}

/// Returns whether the pattern is a plain string.
pub(crate) fn is_plain(pattern: &[u8]) -> bool {
    !pattern.iter().any(|byte| b"^$*+?.([%-".contains(byte))
}

/// Returns the first match at `from` or behind it. `anchors` states whether `^` at the pattern's
/// start means the start of the subject. `spend` is called at every step with its units of work,
/// one or more.
pub(crate) fn find<E>(
    subject: &[u8],
    pattern: &[u8],
    from: usize,
    anchors: bool,
    spend: &mut dyn FnMut(usize) -> Result<(), E>,
) -> Result<Option<Match>, SearchError<E>> {
    let (pattern, is_anchored) = match pattern {
        [b'^', rest @ ..] if anchors => (rest, true),
        _ => (pattern, false),
    };
    let mut matcher = Matcher {
        subject,
        pattern,
        level: 0,
        captures: [Open::UNSET; MAX_CAPTURES],
        depth: 0,
        spend,
    };
    for start in from..=subject.len() {
        matcher.level = 0;
        if let Some(end) = matcher.matches(start, 0)? {
            let captures = matcher.finished()?;
            return Ok(Some(Match { start, end, captures }));
        }
        if is_anchored {
            break;
        }
    }
    Ok(None)
}

/// A capture while the matcher runs.
#[derive(Clone, Copy)]
struct Open {
    start: usize,
    length: Length,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Length {
    Unclosed,
    Position,
    Bytes(usize),
}

impl Open {
    const UNSET: Self = Self { start: 0, length: Length::Unclosed };
}

struct Matcher<'a, E> {
    subject: &'a [u8],
    pattern: &'a [u8],
    level: usize,
    captures: [Open; MAX_CAPTURES],
    depth: u32,
    spend: &'a mut dyn FnMut(usize) -> Result<(), E>,
}

type Matched<E> = Result<Option<usize>, SearchError<E>>;

impl<E> Matcher<'_, E> {
    fn spend(&mut self, units: usize) -> Result<(), SearchError<E>> {
        (self.spend)(units).map_err(SearchError::Stopped)
    }

    /// Matches the pattern from `p` on at `s`. Returns the end of the match.
    fn matches(&mut self, s: usize, p: usize) -> Matched<E> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(SearchError::Malformed("pattern too complex"));
        }
        let matched = self.items(s, p);
        self.depth -= 1;
        matched
    }

    fn items(&mut self, mut s: usize, mut p: usize) -> Matched<E> {
        loop {
            self.spend(1)?;
            let Some(&item) = self.pattern.get(p) else { return Ok(Some(s)) };
            match item {
                b'(' if self.pattern.get(p + 1) == Some(&b')') => {
                    return self.open(s, p + 2, Length::Position);
                }
                b'(' => return self.open(s, p + 1, Length::Unclosed),
                b')' => return self.close(s, p + 1),
                b'$' if p + 1 == self.pattern.len() => {
                    return Ok((s == self.subject.len()).then_some(s));
                }
                b'%' => match self.pattern.get(p + 1) {
                    Some(b'b') => match self.balanced(s, p + 2)? {
                        Some(end) => {
                            (s, p) = (end, p + 4);
                            continue;
                        }
                        None => return Ok(None),
                    },
                    Some(b'f') => {
                        let set = p + 2;
                        if self.pattern.get(set) != Some(&b'[') {
                            return Err(SearchError::Malformed(
                                "missing '[' after '%f' in pattern",
                            ));
                        }
                        let end = self.item_end(set)?;
                        self.spend((end - set) / SET_MEMBERS)?;
                        let before = s
                            .checked_sub(1)
                            .and_then(|at| self.subject.get(at))
                            .copied()
                            .unwrap_or(0);
                        let here = self.subject.get(s).copied().unwrap_or(0);
                        if self.in_set(before, set, end - 1) || !self.in_set(here, set, end - 1) {
                            return Ok(None);
                        }
                        p = end;
                        continue;
                    }
                    Some(digit @ b'0'..=b'9') => match self.repeated(s, *digit)? {
                        Some(end) => {
                            (s, p) = (end, p + 2);
                            continue;
                        }
                        None => return Ok(None),
                    },
                    _ => {}
                },
                _ => {}
            }
            let end = self.item_end(p)?;
            if end - p > SET_MEMBERS {
                self.spend((end - p) / SET_MEMBERS)?;
            }
            match self.pattern.get(end) {
                Some(b'?') => {
                    if self.is_single(s, p, end)
                        && let Some(matched) = self.matches(s + 1, end + 1)?
                    {
                        return Ok(Some(matched));
                    }
                    p = end + 1;
                }
                Some(b'*') => return self.longest(s, p, end),
                Some(b'+') => {
                    return if self.is_single(s, p, end) {
                        self.longest(s + 1, p, end)
                    } else {
                        Ok(None)
                    };
                }
                Some(b'-') => return self.shortest(s, p, end),
                _ => {
                    if !self.is_single(s, p, end) {
                        return Ok(None);
                    }
                    (s, p) = (s + 1, end);
                }
            }
        }
    }

    /// Tries as many repetitions as there are, then fewer.
    fn longest(&mut self, s: usize, p: usize, end: usize) -> Matched<E> {
        let (mut count, units) = (0, 1 + (end - p) / SET_MEMBERS);
        while self.is_single(s + count, p, end) {
            self.spend(units)?;
            count += 1;
        }
        loop {
            if let Some(matched) = self.matches(s + count, end + 1)? {
                return Ok(Some(matched));
            }
            if count == 0 {
                return Ok(None);
            }
            count -= 1;
        }
    }

    /// Tries no repetition, then more.
    fn shortest(&mut self, mut s: usize, p: usize, end: usize) -> Matched<E> {
        loop {
            if let Some(matched) = self.matches(s, end + 1)? {
                return Ok(Some(matched));
            }
            self.spend((end - p) / SET_MEMBERS)?;
            if !self.is_single(s, p, end) {
                return Ok(None);
            }
            s += 1;
        }
    }

    fn open(&mut self, s: usize, p: usize, length: Length) -> Matched<E> {
        let level = self.level;
        let Some(capture) = self.captures.get_mut(level) else {
            return Err(SearchError::Malformed("too many captures"));
        };
        *capture = Open { start: s, length };
        self.level += 1;
        let matched = self.matches(s, p)?;
        if matched.is_none() {
            self.level = level;
        }
        Ok(matched)
    }

    fn close(&mut self, s: usize, p: usize) -> Matched<E> {
        let open = self.captures[..self.level]
            .iter()
            .rposition(|capture| capture.length == Length::Unclosed);
        let Some(index) = open else {
            return Err(SearchError::Malformed("invalid pattern capture"));
        };
        self.captures[index].length = Length::Bytes(s - self.captures[index].start);
        let matched = self.matches(s, p)?;
        if matched.is_none() {
            self.captures[index].length = Length::Unclosed;
        }
        Ok(matched)
    }

    /// Matches `%1` to `%9`: the text of a capture again.
    fn repeated(&mut self, s: usize, digit: u8) -> Matched<E> {
        let capture = digit
            .checked_sub(b'1')
            .and_then(|index| self.captures[..self.level].get(index as usize));
        let Some(Open { start, length: Length::Bytes(length) }) = capture.copied() else {
            return Err(SearchError::Malformed("invalid capture index"));
        };
        self.spend(length / COMPARED_BYTES)?;
        let again = self.subject.get(s..s + length);
        Ok((again == self.subject.get(start..start + length)).then_some(s + length))
    }

    /// Matches `%bxy`.
    fn balanced(&mut self, s: usize, p: usize) -> Matched<E> {
        let Some(&[open, close]) = self.pattern.get(p..p + 2) else {
            return Err(SearchError::Malformed("unbalanced pattern"));
        };
        if self.subject.get(s) != Some(&open) {
            return Ok(None);
        }
        let mut nested = 1;
        for (index, byte) in self.subject.iter().enumerate().skip(s + 1) {
            self.spend(1)?;
            if *byte == close {
                nested -= 1;
                if nested == 0 {
                    return Ok(Some(index + 1));
                }
            } else if *byte == open {
                nested += 1;
            }
        }
        Ok(None)
    }

    /// Returns where the single item at `p` ends: a byte, a class or a set.
    fn item_end(&self, p: usize) -> Result<usize, SearchError<E>> {
        match self.pattern.get(p) {
            Some(b'%') if p + 1 < self.pattern.len() => Ok(p + 2),
            Some(b'%') => Err(SearchError::Malformed("malformed pattern (ends with '%')")),
            Some(b'[') => {
                let mut at = p + 1;
                if self.pattern.get(at) == Some(&b'^') {
                    at += 1;
                }
                // A bracket at the set's start is one of its members.
                loop {
                    let member = self.pattern.get(at);
                    at += if member == Some(&b'%') { 2 } else { 1 };
                    if member.is_none() || at >= self.pattern.len() {
                        return Err(SearchError::Malformed("malformed pattern (missing ']')"));
                    }
                    if self.pattern[at] == b']' {
                        return Ok(at + 1);
                    }
                }
            }
            _ => Ok(p + 1),
        }
    }

    /// Returns whether the item from `p` to `end` matches the byte at `s`.
    fn is_single(&self, s: usize, p: usize, end: usize) -> bool {
        let Some(&byte) = self.subject.get(s) else { return false };
        match self.pattern[p] {
            b'.' => true,
            b'%' => is_class(byte, self.pattern[p + 1]),
            b'[' => self.in_set(byte, p, end - 1),
            literal => literal == byte,
        }
    }

    /// Returns whether `byte` is in the set whose brackets are at `open` and `close`.
    fn in_set(&self, byte: u8, open: usize, close: usize) -> bool {
        let mut at = open + 1;
        let is_negated = self.pattern[at] == b'^';
        at += usize::from(is_negated);
        while at < close {
            if self.pattern[at] == b'%' {
                if is_class(byte, self.pattern[at + 1]) {
                    return !is_negated;
                }
                at += 2;
            } else if self.pattern[at + 1] == b'-' && at + 2 < close {
                if (self.pattern[at]..=self.pattern[at + 2]).contains(&byte) {
                    return !is_negated;
                }
                at += 3;
            } else {
                if self.pattern[at] == byte {
                    return !is_negated;
                }
                at += 1;
            }
        }
        is_negated
    }

    fn finished(&self) -> Result<Vec<Capture>, SearchError<E>> {
        let capture = |open: &Open| match open.length {
            Length::Position => Ok(Capture::Position(open.start)),
            Length::Bytes(length) => {
                Ok(Capture::Bytes { start: open.start, end: open.start + length })
            }
            Length::Unclosed => Err(SearchError::Malformed("unfinished capture")),
        };
        self.captures[..self.level].iter().map(capture).collect()
    }
}

/// Returns whether `byte` is in the class of this letter. Any other character stands for itself.
fn is_class(byte: u8, class: u8) -> bool {
    let is_in = match class.to_ascii_lowercase() {
        b'a' => byte.is_ascii_alphabetic(),
        b'c' => byte.is_ascii_control(),
        b'd' => byte.is_ascii_digit(),
        b'g' => byte.is_ascii_graphic(),
        b'l' => byte.is_ascii_lowercase(),
        b'p' => byte.is_ascii_punctuation(),
        // Vertical tab is white space in C.
        b's' => byte.is_ascii_whitespace() || byte == 0x0b,
        b'u' => byte.is_ascii_uppercase(),
        b'w' => byte.is_ascii_alphanumeric(),
        b'x' => byte.is_ascii_hexdigit(),
        b'z' => byte == 0,
        _ => return class == byte,
    };
    is_in != class.is_ascii_uppercase()
}

#[cfg(test)]
#[path = "pattern_tests.rs"]
mod tests;
