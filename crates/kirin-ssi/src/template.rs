//! Compiling: from the bytes of a page to instructions.

use crate::condition::Condition;
use crate::directive::{self, Directive};
use crate::encoding::Encoding;
use crate::text::{Text, name};
use bytes::Bytes;

/// A compiled page. Its literals share the page's memory.
#[derive(Debug, Default)]
pub struct Template {
    pub(crate) main: Vec<Instruction>,
    blocks: Vec<Block>,
    directives: usize,
}

/// `block`: instructions that only `include stub` carries out.
#[derive(Debug)]
struct Block {
    name: Bytes,
    instructions: Vec<Instruction>,
}

/// One step of a rendering.
#[derive(Debug)]
pub(crate) enum Instruction {
    /// Bytes that stay as they are.
    Literal(Bytes),
    Include(Box<Include>),
    Echo(Box<Echo>),
    Set {
        variable: Box<str>,
        value: Text,
    },
    /// `config errmsg`.
    ErrorMessage(Text),
    /// `config timefmt`.
    TimeFormat(Text),
    /// What cannot be carried out.
    Malformed,
    /// Goes on at an instruction further down unless the condition holds.
    JumpUnless(Box<Condition>, usize),
    Jump(usize),
}

#[derive(Debug)]
pub(crate) struct Include {
    pub(crate) target: Target,
    pub(crate) name: Text,
    /// Nothing behind it is carried out before it is there.
    pub(crate) wait: bool,
    /// The variable that gets the content, in place of the page.
    pub(crate) set: Option<Box<str>>,
    /// The block that stands in for content that is empty or cannot be had.
    pub(crate) stub: Option<Bytes>,
}

/// What an include names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
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
    pub(crate) default: Option<Text>,
    pub(crate) encoding: Encoding,
}

impl Template {
    /// Cuts `page` at its directives. One that is unknown or malformed becomes the error message; one that does not end is
    /// text; an `if` or `block` that does not end goes to the end of the page.
    pub fn compile(page: &Bytes) -> Self {
        let mut compiler = Compiler::default();
        let mut literal_start = 0;
        while let Some(found) = directive::next(page, literal_start) {
            compiler.literal(page.slice(literal_start..found.start));
            let understood =
                found.directive.is_some_and(|directive| compiler.directive(&directive).is_some());
            if !understood {
                compiler.code.instructions.push(Instruction::Malformed);
            }
            compiler.template.directives += 1;
            literal_start = found.end;
        }
        compiler.literal(page.slice(literal_start..));
        compiler.finish()
    }

    /// Whether there is anything to carry out.
    pub fn is_dynamic(&self) -> bool {
        self.directives > 0
    }

    /// Whether the page is empty.
    pub fn is_empty(&self) -> bool {
        self.main.is_empty()
    }

    /// Memory beside the page itself, in bytes.
    pub fn memory_bytes(&self) -> usize {
        let code = |instructions: &Vec<Instruction>| {
            instructions.capacity() * size_of::<Instruction>()
                + instructions.iter().map(Instruction::memory_bytes).sum::<usize>()
        };
        let blocks = self.blocks.iter().map(|block| size_of::<Block>() + code(&block.instructions));
        code(&self.main) + blocks.sum::<usize>()
    }

    /// The instructions of a block, or of the page.
    pub(crate) fn instructions(&self, block: Option<usize>) -> &[Instruction] {
        match block {
            None => &self.main,
            Some(index) => self.blocks.get(index).map_or(&[], |block| &block.instructions),
        }
    }

    /// The index of the block `name`; of several, the last.
    pub(crate) fn block(&self, name: &[u8]) -> Option<usize> {
        self.blocks.iter().rposition(|block| block.name == name)
    }
}

impl Instruction {
    fn memory_bytes(&self) -> usize {
        match self {
            Self::Literal(_) | Self::Malformed | Self::Jump(_) => 0,
            Self::Include(include) => size_of::<Include>() + include.name.memory_bytes(),
            Self::Echo(echo) => size_of::<Echo>() + echo.default.as_ref().map_or(0, Text::memory_bytes),
            Self::Set { value, .. } | Self::ErrorMessage(value) | Self::TimeFormat(value) => {
                value.memory_bytes()
            }
            Self::JumpUnless(condition, _) => condition.memory_bytes(),
        }
    }
}

#[derive(Default)]
struct Compiler {
    template: Template,
    /// What is being written: the page, or a block of it.
    code: Code,
    /// The name of the block that is open, and the page around it.
    around: Option<(Bytes, Code)>,
}

#[derive(Default)]
struct Code {
    instructions: Vec<Instruction>,
    open: Vec<OpenIf>,
}

/// An `if` without its `endif` yet: jumps whose destination is not known.
#[derive(Default)]
struct OpenIf {
    /// To the next `elif` or `else`.
    unless: Option<usize>,
    /// To the `endif`.
    to_end: Vec<usize>,
    has_else: bool,
}

impl Compiler {
    fn literal(&mut self, bytes: Bytes) {
        if !bytes.is_empty() {
            self.code.instructions.push(Instruction::Literal(bytes));
        }
    }

    /// None if it is not understood.
    fn directive(&mut self, directive: &Directive) -> Option<()> {
        match &directive.name[..] {
            b"include" => self.code.instructions.push(include(directive)?),
            b"echo" => self.code.instructions.push(echo(directive)?),
            b"set" if directive.has_only(&["var", "value"]) => {
                let variable = name(directive.value("var")?)?;
                let value = Text::parse(directive.value("value")?);
                self.code.instructions.push(Instruction::Set { variable, value });
            }
            b"config" if directive.has_only(&["errmsg", "timefmt"]) => {
                let format =
                    directive.value("timefmt").map(|value| Instruction::TimeFormat(Text::parse(value)));
                let message =
                    directive.value("errmsg").map(|value| Instruction::ErrorMessage(Text::parse(value)));
                self.code.instructions.extend(format.into_iter().chain(message));
            }
            b"if" if directive.has_only(&["expr"]) => {
                let condition = Condition::parse(directive.value("expr")?)?;
                self.code.open.push(OpenIf::default());
                self.code.branch(condition)?;
            }
            b"elif" if directive.has_only(&["expr"]) => {
                let condition = Condition::parse(directive.value("expr")?)?;
                self.code.end_branch()?;
                self.code.branch(condition)?;
            }
            b"else" if directive.has_only(&[]) => {
                self.code.end_branch()?;
                self.code.open.last_mut()?.has_else = true;
            }
            b"endif" if directive.has_only(&[]) => self.code.end_if()?,
            b"block" if directive.has_only(&["name"]) && self.around.is_none() => {
                self.around = Some((directive.value("name")?.clone(), std::mem::take(&mut self.code)));
            }
            b"endblock" if directive.has_only(&[]) => self.end_block()?,
            _ => return None,
        }
        Some(())
    }

    fn end_block(&mut self) -> Option<()> {
        let (name, outer) = self.around.take()?;
        let instructions = std::mem::replace(&mut self.code, outer).finish();
        self.template.blocks.push(Block { name, instructions });
        Some(())
    }

    fn finish(mut self) -> Template {
        let _ = self.end_block();
        let mut instructions = self.code.finish();
        instructions.shrink_to_fit();
        Template { main: instructions, ..self.template }
    }
}

impl Code {
    fn branch(&mut self, condition: Condition) -> Option<()> {
        self.open.last_mut()?.unless = Some(self.instructions.len());
        self.instructions.push(Instruction::JumpUnless(Box::new(condition), 0));
        Some(())
    }

    /// Ends the branch before an `elif` or `else`.
    fn end_branch(&mut self) -> Option<()> {
        let open = self.open.last_mut().filter(|open| !open.has_else)?;
        open.to_end.push(self.instructions.len());
        let unless = open.unless.take();
        self.instructions.push(Instruction::Jump(0));
        self.land(unless);
        Some(())
    }

    fn end_if(&mut self) -> Option<()> {
        let open = self.open.pop()?;
        self.land(open.to_end.into_iter().chain(open.unless));
        Some(())
    }

    /// Makes the jumps at `from` go on here.
    fn land(&mut self, from: impl IntoIterator<Item = usize>) {
        let here = self.instructions.len();
        for jump in from {
            if let Some(Instruction::Jump(to) | Instruction::JumpUnless(_, to)) =
                self.instructions.get_mut(jump)
            {
                *to = here;
            }
        }
    }

    fn finish(mut self) -> Vec<Instruction> {
        while self.end_if().is_some() {}
        self.instructions
    }
}

fn include(directive: &Directive) -> Option<Instruction> {
    if !directive.has_only(&["", "key", "virtual", "file", "wait", "set", "stub"]) {
        return None;
    }
    let mut targets = directive.parameters.iter().filter_map(|parameter| {
        let target = match &parameter.name[..] {
            b"" | b"key" => Target::Key,
            b"virtual" => Target::Virtual,
            b"file" => Target::File,
            _ => return None,
        };
        Some((target, &parameter.value))
    });
    let (target, value) = targets.next()?;
    if targets.next().is_some() || value.is_empty() {
        return None;
    }
    let name_text = Text::parse(value);
    if let (Target::Key, Some(key)) = (target, name_text.constant()) {
        let is_key = key.iter().all(|byte| *byte > b' ' && *byte != 0x7f);
        is_key.then_some(())?;
    }
    let set = match directive.value("set") {
        Some(variable) => Some(name(variable)?),
        None => None,
    };
    let wait = match directive.value("wait").map(|value| &value[..]) {
        None | Some(b"no") => false,
        Some(b"yes") => true,
        Some(_) => return None,
    };
    let stub = directive.value("stub").cloned();
    Some(Instruction::Include(Box::new(Include { target, name: name_text, wait, set, stub })))
}

fn echo(directive: &Directive) -> Option<Instruction> {
    if !directive.has_only(&["var", "default", "encoding"]) {
        return None;
    }
    let encoding = match directive.value("encoding") {
        Some(encoding) => Encoding::parse(encoding)?,
        None => Encoding::Entity,
    };
    let variable = name(directive.value("var")?)?;
    let default = directive.value("default").map(Text::parse);
    Some(Instruction::Echo(Box::new(Echo { variable, default, encoding })))
}
