//! The syntax of regular expressions, as far as paths of Kirin can say the same.

/// The most groups inside each other.
const MAX_DEPTH: usize = 12;
/// The most sequences that an expression may stand for.
const MAX_SEQUENCES: usize = 64;
/// The most parts of a sequence.
const MAX_ATOMS: usize = 256;
/// The most members of a class that become alternatives.
const MAX_MEMBERS: usize = 4;
/// The longest expression, in bytes.
const MAX_LENGTH: usize = 1000;

/// A part of a sequence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Atom {
    /// `^`.
    Start,
    /// `$`.
    End,
    /// A character.
    Char(char),
    /// `.`: one character.
    Dot,
    /// One character of several.
    OneOf,
    /// One or more characters without a slash. It is true if any characters but a slash may stand
    /// there.
    Run(bool),
    /// Any text, also an empty one.
    Any,
    /// The start of the group with this number and, perhaps, name.
    OpenGroup(usize, Option<String>),
    /// The end of the group with this number.
    CloseGroup(usize),
}

/// A sequence of parts.
pub type Sequence = Vec<Atom>;

/// Returns the sequences that `expression` stands for, in the order of the alternatives. Returns
/// `None` if it has something else, or stands for too many.
pub fn sequences(expression: &str) -> Option<Vec<Sequence>> {
    if expression.len() > MAX_LENGTH {
        return None;
    }
    let expression = expression.strip_prefix("(?i)").unwrap_or(expression);
    let mut reader = Reader { chars: expression.chars().collect(), at: 0, groups: 0 };
    let found = reader.alternatives(0)?;
    (reader.at == reader.chars.len()).then_some(found)
}

struct Reader {
    chars: Vec<char>,
    at: usize,
    groups: usize,
}

impl Reader {
    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn take(&mut self, wanted: &str) -> bool {
        let length = wanted.chars().count();
        let next = self.chars.get(self.at..self.at + length);
        let is_next = next.is_some_and(|next| next.iter().copied().eq(wanted.chars()));
        if is_next {
            self.at += length;
        }
        is_next
    }

    fn alternatives(&mut self, depth: usize) -> Option<Vec<Sequence>> {
        if depth > MAX_DEPTH {
            return None;
        }
        let mut all = self.sequence(depth)?;
        while self.take("|") {
            all.extend(self.sequence(depth)?);
            if all.len() > MAX_SEQUENCES {
                return None;
            }
        }
        Some(all)
    }

    fn sequence(&mut self, depth: usize) -> Option<Vec<Sequence>> {
        let mut all: Vec<Sequence> = vec![Vec::new()];
        while self.peek().is_some_and(|c| c != '|' && c != ')') {
            let piece = self.piece(depth)?;
            let piece = self.repeated(piece)?;
            if all.len() * piece.len() > MAX_SEQUENCES {
                return None;
            }
            all = all
                .iter()
                .flat_map(|before| piece.iter().map(|next| [&**before, next].concat()))
                .collect();
            if all.iter().any(|sequence| sequence.len() > MAX_ATOMS) {
                return None;
            }
        }
        Some(all)
    }

    fn piece(&mut self, depth: usize) -> Option<Vec<Sequence>> {
        let one = |atom| Some(vec![vec![atom]]);
        let c = self.peek()?;
        self.at += 1;
        match c {
            '^' => one(Atom::Start),
            '$' => one(Atom::End),
            '.' => one(Atom::Dot),
            '(' => self.group(depth),
            '[' => self.class(),
            '\\' => self.escape(),
            '*' | '+' | '?' | '{' => None,
            c => one(Atom::Char(c)),
        }
    }

    fn group(&mut self, depth: usize) -> Option<Vec<Sequence>> {
        let mut number = None;
        let mut name = None;
        if !self.take("?:") {
            if self.take("?<") || self.take("?P<") {
                let from = self.at;
                while self.peek()?.is_ascii_alphanumeric() || self.peek()? == '_' {
                    self.at += 1;
                }
                name = Some(self.chars.get(from..self.at)?.iter().collect::<String>());
                if !self.take(">") {
                    return None;
                }
            } else if self.take("?") {
                return None;
            }
            self.groups += 1;
            number = Some(self.groups);
        }
        let inner = self.alternatives(depth + 1)?;
        if !self.take(")") {
            return None;
        }
        let Some(number) = number else { return Some(inner) };
        let with_group = |sequence: Sequence| {
            let open = std::iter::once(Atom::OpenGroup(number, name.clone()));
            open.chain(sequence).chain([Atom::CloseGroup(number)]).collect()
        };
        Some(inner.into_iter().map(with_group).collect())
    }

    fn class(&mut self) -> Option<Vec<Sequence>> {
        let is_negated = self.take("^");
        let from = self.at;
        // A bracket at the start is a member.
        self.take("]");
        while self.peek()? != ']' {
            if self.peek()? == '\\' {
                self.at += 1;
            }
            self.at += 1;
        }
        let members: String = self.chars.get(from..self.at)?.iter().collect();
        self.at += 1;
        let members = members.replace("\\/", "/");
        match (is_negated, members.as_str()) {
            (true, "/") => Some(vec![vec![Atom::Run(true)]]),
            (true, members) if members.contains('/') => Some(vec![vec![Atom::Run(false)]]),
            (true, _) => Some(vec![vec![Atom::OneOf]]),
            (false, members) if members.chars().count() == 1 => {
                Some(vec![vec![Atom::Char(members.chars().next()?)]])
            }
            (false, members) if members.len() <= MAX_MEMBERS && is_plain(members) => {
                Some(members.chars().map(|c| vec![Atom::Char(c)]).collect())
            }
            (false, members) if members.contains(['/', '[']) || members.contains("\\W") => {
                Some(vec![vec![Atom::OneOf]])
            }
            (false, _) => Some(vec![vec![Atom::Run(false)]]),
        }
    }

    fn escape(&mut self) -> Option<Vec<Sequence>> {
        let c = self.peek()?;
        self.at += 1;
        match c {
            'd' | 'w' => Some(vec![vec![Atom::Run(false)]]),
            c if c.is_ascii_alphanumeric() => None,
            c => Some(vec![vec![Atom::Char(c)]]),
        }
    }

    /// Reads the quantifier behind a piece.
    fn repeated(&mut self, piece: Vec<Sequence>) -> Option<Vec<Sequence>> {
        let (may_be_none, may_be_many) = match self.peek() {
            Some('*') => (true, true),
            Some('+') => (false, true),
            Some('?') => (true, false),
            Some('{') => return self.counted(piece),
            _ => return Some(vec_single(piece)),
        };
        let is_class =
            piece.len() > 1 && piece.iter().all(|one| matches!(one.as_slice(), [Atom::Char(_)]));
        // Some characters of a class, repeated.
        let piece = if is_class && may_be_many { vec![vec![Atom::Run(false)]] } else { piece };
        self.at += 1;
        // Lazy and possessive quantifiers match the same texts.
        let _ = self.take("?") || self.take("+");
        if !may_be_many {
            return Some(piece.into_iter().chain([Vec::new()]).collect());
        }
        let mut repeated = match piece.as_slice() {
            [one] => match one.as_slice() {
                [Atom::OneOf | Atom::Dot] => vec![vec![Atom::Any]],
                [Atom::Run(all)] => vec![vec![Atom::Run(*all)]],
                _ => return None,
            },
            _ => return None,
        };
        if may_be_none && repeated != [[Atom::Any]] {
            repeated.push(Vec::new());
        }
        Some(repeated)
    }

    /// Reads `{2}`, `{2,}` and `{2,4}` behind a class.
    fn counted(&mut self, piece: Vec<Sequence>) -> Option<Vec<Sequence>> {
        while self.peek()? != '}' {
            self.at += 1;
        }
        self.at += 1;
        let is_run = matches!(piece.as_slice(), [one] if matches!(one.as_slice(), [Atom::Run(_)]));
        is_run.then(|| vec![vec![Atom::Run(false)]])
    }
}

/// Returns whether the members of a class are letters and digits that stand for themselves.
fn is_plain(members: &str) -> bool {
    members.chars().all(|c| c.is_ascii_alphanumeric())
}

/// Returns the piece without a quantifier. A single character of a class stays one character.
fn vec_single(piece: Vec<Sequence>) -> Vec<Sequence> {
    let is_class = matches!(piece.as_slice(), [one] if matches!(one.as_slice(), [Atom::Run(_)]));
    if is_class { vec![vec![Atom::OneOf]] } else { piece }
}
