//! A compiled page: instructions, which are the same for all syntaxes.

use bytes::Bytes;

use crate::compiler;
use crate::condition::IfCondition;
use crate::encoding::Encoding;
use crate::syntax::Syntax;
use crate::text::Text;

/// A compiled page. Its literals share the page's memory.
#[derive(Debug, Default)]
pub struct Template {
    pub(crate) main: Vec<Instruction>,
    pub(crate) blocks: Vec<Block>,
    pub(crate) directives: usize,
    /// The names of the variables that its instructions ask for, each once.
    pub(crate) variables: Box<[Box<str>]>,
}

/// A `block`: instructions that only `include stub` carries out.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) instructions: Vec<Instruction>,
}

/// One step of a rendering.
#[derive(Debug)]
pub(crate) enum Instruction {
    /// Bytes that are unchanged in the page.
    Literal(Bytes),
    Include(Box<Include>),
    Echo(Box<Echo>),
    /// A variable of ESI.
    Write(Text),
    Set {
        variable: Box<str>,
        value: Text,
    },
    /// The definition of a block in a branch, by the number of its name and its index.
    Define {
        name: usize,
        block: usize,
    },
    /// `config errmsg`.
    ErrorMessage(Bytes),
    /// `config timefmt`.
    TimeFormat(Box<str>),
    /// A directive that cannot be carried out.
    Malformed,
    /// A jump to an instruction further down, unless the condition is true.
    JumpUnless(Box<IfCondition>, usize),
    Jump(usize),
}

#[derive(Debug)]
pub(crate) struct Include {
    pub(crate) target: IncludeTarget,
    pub(crate) name: Text,
    /// The alternative that is requested if the first target fails.
    pub(crate) alternate: Option<Text>,
    /// Whether no later instruction is carried out before the content has arrived.
    pub(crate) wait: bool,
    /// The variable that gets the content. Without it the page does.
    pub(crate) set: Option<Box<str>>,
    /// The block that replaces content that is empty or not available.
    pub(crate) stub: Option<Stub>,
    /// Whether a failure shows nothing instead of the error message.
    pub(crate) is_silent: bool,
}

/// The block that a stub names.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stub {
    /// A block by its index. It is always defined.
    Block(usize),
    /// A block in a branch, by the number of its name. It is defined only if the branch is carried
    /// out.
    Named(usize),
}

/// The target of an include.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IncludeTarget {
    /// A key of the store.
    Key,
    /// A request target of this server.
    Virtual,
    /// A file, relative to the page.
    File,
}

#[derive(Debug)]
pub(crate) struct Echo {
    pub(crate) variable: Box<str>,
    /// The text that replaces a missing variable.
    pub(crate) default: Bytes,
    pub(crate) encoding: Encoding,
}

impl Template {
    /// Splits `page` at its directives. A directive that is unknown or malformed becomes the error
    /// message. One without an end is text. An `if` or `block` without an end reaches to the end of
    /// the page.
    pub fn compile(page: &Bytes, syntax: Syntax) -> Self {
        compiler::compile(page, syntax)
    }

    /// Returns whether the page has instructions besides text.
    pub fn is_dynamic(&self) -> bool {
        self.directives > 0
    }

    /// Returns whether the page is empty.
    pub fn is_empty(&self) -> bool {
        self.main.is_empty()
    }

    /// Returns the names of the variables that its own instructions ask for, in lower case. Pages
    /// that it includes may ask for others.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.variables.iter().map(|name| &**name)
    }

    /// Returns the memory besides the page itself, in bytes.
    pub fn memory_bytes(&self) -> usize {
        let code = |instructions: &Vec<Instruction>| {
            instructions.capacity() * size_of::<Instruction>()
                + instructions.iter().map(Instruction::memory_bytes).sum::<usize>()
        };
        let blocks = self.blocks.iter().map(|block| size_of::<Block>() + code(&block.instructions));
        let variables = self.variables.iter().map(|name| size_of::<Box<str>>() + name.len() + 16);
        code(&self.main) + blocks.sum::<usize>() + variables.sum::<usize>()
    }

    /// Returns the instructions of a block, or of the page.
    pub(crate) fn instructions(&self, block: Option<usize>) -> &[Instruction] {
        match block {
            None => &self.main,
            Some(index) => self.blocks.get(index).map_or(&[], |block| &block.instructions),
        }
    }
}

impl Instruction {
    /// Returns the names of the variables that the instruction asks for.
    pub(crate) fn variables(&self) -> Vec<&str> {
        match self {
            Self::Echo(echo) => vec![&echo.variable],
            Self::Write(text) | Self::Set { value: text, .. } => text.variables().collect(),
            Self::JumpUnless(condition, _) => condition.variables(),
            Self::Include(include) => include
                .name
                .variables()
                .chain(include.alternate.iter().flat_map(Text::variables))
                .collect(),
            Self::Literal(_)
            | Self::Malformed
            | Self::Define { .. }
            | Self::Jump(_)
            | Self::ErrorMessage(_)
            | Self::TimeFormat(_) => Vec::new(),
        }
    }

    fn memory_bytes(&self) -> usize {
        match self {
            Self::Literal(_)
            | Self::Malformed
            | Self::Define { .. }
            | Self::Jump(_)
            | Self::ErrorMessage(_) => 0,
            Self::Include(include) => {
                let alternate = include.alternate.as_ref().map_or(0, Text::memory_bytes);
                size_of::<Include>() + include.name.memory_bytes() + alternate
            }
            Self::Echo(_) => size_of::<Echo>(),
            Self::Write(value) | Self::Set { value, .. } => value.memory_bytes(),
            Self::TimeFormat(format) => format.len(),
            Self::JumpUnless(condition, _) => condition.memory_bytes(),
        }
    }
}
