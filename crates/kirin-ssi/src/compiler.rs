//! The compiler: it makes instructions of the bytes of a page, in one pass.

use std::collections::HashMap;

use bytes::Bytes;

use crate::condition::IfCondition;
use crate::directive::Directive;
use crate::elements::{Elements, PageElement};
use crate::ssi;
use crate::syntax::Syntax;
use crate::template::{Block, Instruction, Stub, Template};

/// The most regular expressions in one page. Each takes time to compile and memory to keep.
const MAX_REGEXES: usize = 256;

/// Compiles `page`.
pub(crate) fn compile(page: &Bytes, syntax: Syntax) -> Template {
    let mut compiler = Compiler::default();
    let mut literal_start = 0;
    for (place, element) in Elements::new(page, syntax) {
        compiler.literal(page.slice(literal_start..place.start));
        literal_start = place.end;
        compiler.template.directives += 1;
        match element {
            PageElement::Nothing => {}
            PageElement::Instruction(instruction) => compiler.code.instructions.push(instruction),
            PageElement::Directive(directive) => {
                if compiler.directive(&directive).is_none() {
                    compiler.code.instructions.push(Instruction::Malformed);
                }
            }
        }
    }
    compiler.literal(page.slice(literal_start..));
    compiler.finish()
}

#[derive(Default)]
struct Compiler {
    template: Template,
    /// The instructions that are being written: those of the page, or of a block in it.
    code: Code,
    /// The name of the open block, and the instructions of the page around it.
    around: Option<(Bytes, Code)>,
    /// The blocks by their names.
    blocks: HashMap<Bytes, Stub>,
    regexes: usize,
}

#[derive(Default)]
struct Code {
    instructions: Vec<Instruction>,
    open: Vec<OpenIf>,
}

/// An `if` without its `endif`: jumps whose destination is not known yet.
#[derive(Default)]
struct OpenIf {
    /// The jump to the next `elif` or `else`.
    unless: Option<usize>,
    /// The jumps to the `endif`.
    to_end: Vec<usize>,
    has_else: bool,
}

impl Compiler {
    fn literal(&mut self, bytes: Bytes) {
        if !bytes.is_empty() {
            self.code.instructions.push(Instruction::Literal(bytes));
        }
    }

    /// Adds the instructions of a directive. Returns `None` if it is malformed.
    fn directive(&mut self, directive: &Directive) -> Option<()> {
        match &directive.name[..] {
            b"include" => {
                let include = ssi::include(directive, |name| self.blocks.get(name).copied())?;
                self.code.instructions.push(include);
            }
            b"echo" => self.code.instructions.push(ssi::echo(directive)?),
            b"set" => self.code.instructions.push(ssi::set(directive)?),
            b"config" => self.code.instructions.extend(ssi::config(directive)?),
            b"if" => {
                let condition = self.condition(directive)?;
                self.code.open.push(OpenIf::default());
                self.code.branch(condition)?;
            }
            b"elif" => {
                let condition = self.condition(directive)?;
                self.code.end_branch()?;
                self.code.branch(condition)?;
            }
            b"else" if directive.has_only(&[]) => {
                self.code.end_branch()?;
                self.code.open.last_mut()?.has_else = true;
            }
            b"endif" if directive.has_only(&[]) => self.code.end_if()?,
            b"block" if directive.has_only(&["name"]) => {
                let name = directive.value("name")?;
                // A block inside a block continues that block, as in nginx.
                if self.around.is_none() {
                    self.around = Some((name.clone(), std::mem::take(&mut self.code)));
                }
            }
            // An `endblock` without a block means nothing, as in nginx.
            b"endblock" if directive.has_only(&[]) => self.end_block(),
            _ => return None,
        }
        Some(())
    }

    fn condition(&mut self, directive: &Directive) -> Option<IfCondition> {
        let expression = directive.value("expr").filter(|_| directive.has_only(&["expr"]))?;
        let condition = IfCondition::parse(expression, self.regexes < MAX_REGEXES)?;
        self.regexes += usize::from(condition.has_regex());
        Some(condition)
    }

    /// Defines the open block. Of several blocks with the same name, the first one that is carried
    /// out counts.
    fn end_block(&mut self) {
        let Some((name, outer)) = self.around.take() else { return };
        let instructions = std::mem::replace(&mut self.code, outer).finish();
        let block = self.template.blocks.len();
        self.template.blocks.push(Block { instructions });
        let is_certain = self.code.open.is_empty();
        let number = self.blocks.len();
        let stub = if is_certain { Stub::Block(block) } else { Stub::Named(number) };
        if let Stub::Named(name) = *self.blocks.entry(name).or_insert(stub) {
            self.code.instructions.push(Instruction::Define { name, block });
        }
    }

    fn finish(mut self) -> Template {
        self.end_block();
        let main = self.code.finish();
        let blocks = self.template.blocks.iter().flat_map(|block| &block.instructions);
        let mut variables: Vec<&str> =
            main.iter().chain(blocks).flat_map(Instruction::variables).collect();
        variables.sort_unstable();
        variables.dedup();
        let variables = variables.into_iter().map(Into::into).collect();
        Template { main, variables, ..self.template }
    }
}

impl Code {
    fn branch(&mut self, condition: IfCondition) -> Option<()> {
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

    /// Makes the jumps at `from` lead to this place.
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
        self.instructions.shrink_to_fit();
        self.instructions
    }
}
