//! Rendering: makes the pieces to send of a compiled page.
//!
//! A rendering stops where it needs a missing part, and later continues there. The frames of a page
//! inside a page are a list, not a recursion. A part that arrives later has a [`Hole`] with its
//! replacement until then.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;

use crate::ERROR_MESSAGE;
use crate::local_target::local_target;
use crate::render_source::{FoundItem, IncludeRefusal, RenderSource, Requested, Requesting, Zone};
use crate::scope::Scope;
use crate::template::{Echo, Include, IncludeTarget, Instruction, Stub, Template};
use crate::text::Text;
use crate::value::{LeadsElsewhere, VariableValue};

/// The deepest nesting of includes. A cycle ends here too.
pub const MAX_DEPTH: usize = 16;

/// The most includes in one page with all pages that it includes. A few items that include each
/// other twice must not make an endless page.
const MAX_INCLUDES: usize = 4096;

/// The most requests that one page may start.
const MAX_REQUESTS: usize = 256;

/// nginx's default.
const TIME_FORMAT: &str = "%A, %d-%b-%Y %H:%M:%S %Z";

/// The state of a rendering.
#[derive(Debug, PartialEq, Eq)]
pub enum RenderProgress {
    /// All instructions are carried out. Requests may still be in progress.
    Done,
    /// The response to the request with this id is needed first.
    Wait(usize),
    /// The next include is of an item that is not known yet. The caller continues when it is.
    Unknown,
}

/// The first problem of a rendering.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RenderProblem {
    /// The page includes a missing key.
    Missing(Bytes),
    /// The page includes itself, too deeply or too much. The value is the key where Kirin stopped.
    Cut(Bytes),
}

/// A page that is being rendered.
pub struct Rendering {
    frames: Vec<RenderFrame>,
    pieces: Vec<Bytes>,
    /// The holes, sorted by their start. A hole inside another comes behind it.
    holes: Vec<Hole>,
    /// The number of pieces that have been taken already.
    taken: usize,
    scope: Scope,
    error_message: Bytes,
    time_format: Cow<'static, str>,
    includes: usize,
    requests: usize,
    /// The id of the request whose response is needed first.
    awaited: Option<usize>,
    missing: Option<Bytes>,
    cut: Option<Bytes>,
}

/// Why a frame is not carried out any further.
enum FrameStop {
    /// It has ended.
    End,
    /// Another frame, or a response, comes first.
    OtherFirst,
    /// The item of its next include is not known yet.
    Unknown,
}

/// A page or block whose instructions are being carried out.
struct RenderFrame {
    template: Arc<Template>,
    block: Option<usize>,
    at: usize,
    then: Then,
    /// The index of the page's frame. For a block it is that of its page, for a page its own.
    page: usize,
    /// For a page, the blocks whose definitions have been carried out, by the number of their
    /// names.
    defined: Vec<Option<usize>>,
}

/// The action at the end of a frame.
enum Then {
    Nothing,
    /// The pieces from this one on become the value of a variable.
    Set(Box<str>, usize),
    /// The pieces so far are the replacement for the response to this request.
    EndHole(usize),
}

/// The place of a response in the page. If there is no response, its own pieces are shown. The
/// first of them is always empty.
struct Hole {
    id: usize,
    start: usize,
    end: usize,
    /// Whether no response can arrive any more.
    settled: bool,
    content: Option<Vec<Bytes>>,
    has_stub: bool,
    wait: bool,
    set: Option<Box<str>>,
}

impl RenderFrame {
    fn new(page: usize, template: Arc<Template>, block: Option<usize>, then: Then) -> Self {
        Self { template, block, at: 0, then, page, defined: Vec::new() }
    }
}

impl Rendering {
    /// Starts the rendering of a page.
    pub fn new(template: Arc<Template>) -> Self {
        Self::within(template, Scope::default())
    }

    /// Starts the rendering of a page that another page includes, with the variables of that page.
    pub fn within(template: Arc<Template>, scope: Scope) -> Self {
        let pieces = Vec::with_capacity(template.main.len() + 8);
        Self {
            frames: vec![RenderFrame::new(0, template, None, Then::Nothing)],
            pieces,
            holes: Vec::new(),
            taken: 0,
            scope,
            error_message: Bytes::from_static(ERROR_MESSAGE),
            time_format: Cow::Borrowed(TIME_FORMAT),
            includes: 0,
            requests: 0,
            awaited: None,
            missing: None,
            cut: None,
        }
    }

    /// Carries out instructions until a response or an item is needed, or the page ends.
    pub fn run(&mut self, source: &mut impl RenderSource) -> RenderProgress {
        loop {
            if let Some(id) = self.awaited {
                if !self.is_settled(id) {
                    return RenderProgress::Wait(id);
                }
                self.awaited = None;
                self.set_from_hole(id);
            }
            if self.frames.is_empty() {
                return RenderProgress::Done;
            }
            match self.run_frame(source) {
                FrameStop::OtherFirst => {}
                FrameStop::Unknown => return RenderProgress::Unknown,
                FrameStop::End => {
                    if let Some(id) = self.end_frame() {
                        return RenderProgress::Wait(id);
                    }
                }
            }
        }
    }

    /// Carries out instructions of the last frame, as far as possible.
    fn run_frame(&mut self, source: &mut impl RenderSource) -> FrameStop {
        let depth = self.frames.len();
        let Some(frame) = self.frames.last() else { return FrameStop::OtherFirst };
        let template = Arc::clone(&frame.template);
        let instructions = template.instructions(frame.block);
        let mut at = frame.at;
        while let Some(instruction) = instructions.get(at) {
            at += 1;
            match instruction {
                Instruction::Literal(bytes) => self.pieces.push(bytes.clone()),
                Instruction::Malformed => self.pieces.push(self.error_message.clone()),
                Instruction::Echo(echo) => self.echo(echo, source),
                Instruction::Write(text) => {
                    let value = self.evaluate(text, source);
                    self.pieces.push(value.bytes);
                }
                Instruction::Define { name, block } => self.define(*name, *block),
                Instruction::Set { variable, value } => {
                    let value = self.evaluate(value, source);
                    self.scope.set(variable, value);
                }
                Instruction::ErrorMessage(message) => self.error_message = message.clone(),
                Instruction::TimeFormat(format) => {
                    self.time_format = Cow::Owned(format.to_string())
                }
                Instruction::JumpUnless(condition, to) => {
                    if !condition
                        .holds(&mut self.scope, |name| outside(name, &self.time_format, source))
                    {
                        at = *to;
                    }
                }
                Instruction::Jump(to) => at = *to,
                Instruction::Include(include) => {
                    self.go_on_at(at);
                    if !self.include(&template, include, source) {
                        self.go_on_at(at - 1);
                        return FrameStop::Unknown;
                    }
                    if self.frames.len() != depth || self.awaited.is_some() {
                        return FrameStop::OtherFirst;
                    }
                }
            }
        }
        self.go_on_at(at);
        FrameStop::End
    }

    /// Returns the keys of items that the present page includes from here on, as far as its text
    /// names them. They may be needed, so they can be fetched together.
    pub fn keys_ahead(&self) -> impl Iterator<Item = Bytes> {
        let ahead = self
            .frames
            .last()
            .and_then(|frame| frame.template.instructions(frame.block).get(frame.at..));
        ahead.unwrap_or_default().iter().filter_map(|instruction| match instruction {
            Instruction::Include(include) if include.target == IncludeTarget::Key => {
                include.name.constant()
            }
            _ => None,
        })
    }

    /// Takes the response to the request `id`: its body, or `None` if the request has failed.
    pub fn fill(&mut self, id: usize, content: Option<Vec<Bytes>>) {
        let Some(hole) = self.holes.iter_mut().find(|hole| hole.id == id) else { return };
        hole.settled = true;
        let is_empty = content.as_ref().is_none_or(|pieces| pieces.iter().all(Bytes::is_empty));
        if !(is_empty && hole.has_stub) {
            hole.content = content;
        }
    }

    /// Takes the variables that the part of request `id` has set. They become the page's own if the
    /// page has waited for the part.
    pub fn adopt(&mut self, id: usize, scope: &Scope) {
        if self.awaited == Some(id) {
            self.scope.adopt(scope);
        }
    }

    /// Returns the page, as long as it is not at its end.
    pub fn template(&self) -> Option<&Template> {
        self.frames.first().map(|frame| &*frame.template)
    }

    /// Returns the present variables.
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// Returns the pieces that are final and have not been taken yet. The program sends them while
    /// the rest of the page is made.
    pub fn take_ready(&mut self) -> Vec<Bytes> {
        let unsettled = self.holes.iter().find(|hole| !hole.settled && hole.start >= self.taken);
        let captured = self.frames.iter().find_map(|frame| match &frame.then {
            Then::Set(_, start) => Some(*start),
            Then::EndHole(_) | Then::Nothing => None,
        });
        let open_set = self.holes.iter().find(|hole| hole.set.is_some()).map(|hole| hole.start);
        let ends = [Some(self.pieces.len()), unsettled.map(|hole| hole.start), captured, open_set];
        let end = ends.into_iter().flatten().min().unwrap_or(0);
        if end <= self.taken {
            return Vec::new();
        }
        if self.taken == 0 && self.holes.is_empty() && self.frames.is_empty() {
            // This is the complete page at once, and no caller asks for it again.
            return std::mem::take(&mut self.pieces);
        }
        let ready = self.flatten(self.taken, end);
        self.taken = end;
        ready
    }

    /// Returns the problem of the page, if there is one. A cycle is worse than a missing part.
    pub fn problem(&self) -> Option<RenderProblem> {
        let cut = self.cut.clone().map(RenderProblem::Cut);
        cut.or_else(|| self.missing.clone().map(RenderProblem::Missing))
    }

    /// Returns whether every request has its response.
    pub fn is_settled_whole(&self) -> bool {
        self.holes.iter().all(|hole| hole.settled)
    }

    fn is_settled(&self, id: usize) -> bool {
        self.holes.iter().find(|hole| hole.id == id).is_none_or(|hole| hole.settled)
    }

    fn go_on_at(&mut self, at: usize) {
        if let Some(frame) = self.frames.last_mut() {
            frame.at = at;
        }
    }

    /// Defines a named block. If several blocks have the same name, the first counts.
    fn define(&mut self, name: usize, block: usize) {
        if let Some(frame) = self.frames.last_mut() {
            if frame.defined.len() <= name {
                frame.defined.resize(name + 1, None);
            }
            frame.defined[name].get_or_insert(block);
        }
    }

    /// Returns the block that a stub names, or `None` if its definition has not been carried out.
    fn stub(&self, stub: Stub) -> Option<usize> {
        match stub {
            Stub::Block(block) => Some(block),
            Stub::Named(name) => {
                let page = self.frames.last()?.page;
                self.frames.get(page)?.defined.get(name).copied().flatten()
            }
        }
    }

    fn push_frame(&mut self, template: Arc<Template>, block: Option<usize>, then: Then) {
        let page = match block {
            Some(_) => self.frames.last().map_or(0, |frame| frame.page),
            None => self.frames.len(),
        };
        self.frames.push(RenderFrame::new(page, template, block, then));
    }

    fn variable(&self, name: &str, source: &mut impl RenderSource) -> Option<VariableValue> {
        self.scope.get(name).or_else(|| outside(name, &self.time_format, source))
    }

    fn evaluate(&self, text: &Text, source: &mut impl RenderSource) -> VariableValue {
        text.evaluate(|name| self.variable(name, source))
    }

    fn echo(&mut self, echo: &Echo, source: &mut impl RenderSource) {
        let value = self.variable(&echo.variable, source);
        let value = value.map_or_else(|| echo.default.clone(), |value| value.bytes);
        self.pieces.push(echo.encoding.encode(value));
    }

    /// Carries out an include. Returns false if its item is not known yet. Nothing has changed
    /// then.
    fn include(
        &mut self,
        template: &Arc<Template>,
        include: &Include,
        source: &mut impl RenderSource,
    ) -> bool {
        let stub = include.stub.map(|stub| self.stub(stub));
        if stub == Some(None) {
            // nginx does the same if there is no such block.
            self.pieces.push(self.error_message.clone());
            return true;
        }
        let stub = stub.flatten();
        let name = self.evaluate(&include.name, source);
        if self.frames.len() > MAX_DEPTH || self.includes >= MAX_INCLUDES {
            self.cut.get_or_insert(name.bytes);
            self.show_instead(template, include, stub);
            return true;
        }
        let requested = match include.target {
            IncludeTarget::Key => match source.item(&name.bytes) {
                FoundItem::Template(template) => Requested::Template(template),
                FoundItem::Missing => Requested::Failed,
                FoundItem::Unknown => return false,
            },
            IncludeTarget::Virtual | IncludeTarget::File if self.requests == MAX_REQUESTS => {
                self.cut.get_or_insert_with(|| name.bytes.clone());
                Requested::Failed
            }
            target => self.request(target, &name, include.alternate.as_ref(), source),
        };
        self.includes += 1;
        match requested {
            Requested::Template(content) if !(content.is_empty() && stub.is_some()) => {
                // Most included items have only text.
                if let ([Instruction::Literal(bytes)], None) = (&content.main[..], &include.set) {
                    self.pieces.push(bytes.clone());
                    return true;
                }
                let then = match &include.set {
                    Some(variable) => Then::Set(variable.clone(), self.pieces.len()),
                    None => Then::Nothing,
                };
                self.push_frame(content, None, then);
            }
            Requested::Pending => self.begin_hole(template, include, stub),
            Requested::Template(_) | Requested::Failed => {
                if include.target == IncludeTarget::Key && stub.is_none() {
                    self.missing.get_or_insert(name.bytes);
                }
                self.show_instead(template, include, stub);
            }
        }
        true
    }

    fn request(
        &mut self,
        target: IncludeTarget,
        name: &VariableValue,
        alternate: Option<&Text>,
        source: &mut impl RenderSource,
    ) -> Requested {
        let alternate = alternate.map(|alternate| self.evaluate(alternate, source));
        let mut here = |value: &VariableValue| match value.target() {
            // A file name has no host.
            Ok(name) if target == IncludeTarget::File => Ok(name),
            Ok(name) => local_target(&name, source).ok_or(IncludeRefusal::OtherServer),
            Err(LeadsElsewhere) => Err(IncludeRefusal::OtherPart),
        };
        let first = here(name);
        let second = alternate.as_ref().and_then(|alternate| here(alternate).ok());
        let id = self.requests;
        let mut ask = |name: &Bytes, alternate| {
            source.request(Requesting { target, name, alternate }, &self.scope, id)
        };
        match (first, second) {
            (Ok(first), None) => ask(&first, None),
            (Ok(first), Some(second)) => match ask(&first, Some(&second)) {
                Requested::Failed => ask(&second, None),
                requested => requested,
            },
            (Err(_), Some(second)) => ask(&second, None),
            (Err(why), None) => {
                source.refuse(&name.bytes, why);
                Requested::Failed
            }
        }
    }

    /// Shows the stub or the error message, or puts it into the variable that the content was for.
    fn show_instead(&mut self, template: &Arc<Template>, include: &Include, block: Option<usize>) {
        match (block, &include.set) {
            (None, Some(variable)) => self.scope.set(variable, VariableValue::default()),
            (None, None) if include.is_silent => {}
            (None, None) => self.pieces.push(self.error_message.clone()),
            (Some(_), set) => {
                let then = match set {
                    Some(variable) => Then::Set(variable.clone(), self.pieces.len()),
                    None => Then::Nothing,
                };
                self.push_frame(Arc::clone(template), block, then);
            }
        }
    }

    /// Adds a place for a response, and carries out the stub into it.
    fn begin_hole(&mut self, template: &Arc<Template>, include: &Include, block: Option<usize>) {
        let id = self.requests;
        self.requests += 1;
        let start = self.pieces.len();
        self.pieces.push(Bytes::new());
        self.holes.push(Hole {
            id,
            start,
            end: usize::MAX,
            settled: false,
            content: None,
            has_stub: block.is_some(),
            wait: include.wait,
            set: include.set.clone(),
        });
        if block.is_none() {
            if include.set.is_none() && !include.is_silent {
                self.pieces.push(self.error_message.clone());
            }
            self.end_hole(id);
        } else {
            self.push_frame(Arc::clone(template), block, Then::EndHole(id));
        }
    }

    fn end_hole(&mut self, id: usize) {
        let end = self.pieces.len();
        if let Some(hole) = self.holes.iter_mut().find(|hole| hole.id == id) {
            hole.end = end;
            if hole.wait || hole.set.is_some() {
                self.awaited = Some(id);
            }
        }
    }

    /// Ends the last frame. If a response is needed first, returns the id of its request.
    fn end_frame(&mut self) -> Option<usize> {
        if let Some(RenderFrame { then: Then::Set(_, start), .. }) = self.frames.last()
            && let Some(hole) = self.holes.iter().find(|hole| hole.start >= *start && !hole.settled)
        {
            return Some(hole.id);
        }
        match self.frames.pop()?.then {
            Then::Nothing => {}
            Then::Set(variable, start) => self.set_from_pieces(&variable, start),
            Then::EndHole(id) => self.end_hole(id),
        }
        None
    }

    /// Moves the response to request `id` into its variable, if it has one.
    fn set_from_hole(&mut self, id: usize) {
        let Some(hole) = self.holes.iter_mut().find(|hole| hole.id == id) else { return };
        let (start, variable) = (hole.start, hole.set.take());
        if let Some(variable) = variable {
            self.set_from_pieces(&variable, start);
        }
    }

    fn set_from_pieces(&mut self, variable: &str, start: usize) {
        let value = match &self.flatten(start, self.pieces.len())[..] {
            [value] => value.clone(),
            pieces => Bytes::from(pieces.concat()),
        };
        self.pieces.truncate(start);
        self.holes.retain(|hole| hole.start < start);
        self.scope.set(variable, VariableValue::authors(value));
    }

    /// Returns the pieces from `start` to `end`, with responses in their places.
    fn flatten(&self, start: usize, end: usize) -> Vec<Bytes> {
        let mut flat = Vec::with_capacity(end - start);
        let mut at = start;
        for hole in self.holes.iter().filter(|hole| hole.start < end) {
            let Some(content) = &hole.content else { continue };
            if hole.start < at {
                continue;
            }
            flat.extend_from_slice(&self.pieces[at..hole.start]);
            flat.extend(content.iter().cloned());
            at = hole.end.min(end);
        }
        flat.extend_from_slice(&self.pieces[at..end]);
        flat.retain(|piece| !piece.is_empty());
        flat
    }
}

/// Returns a variable that the page has not set.
fn outside(name: &str, time_format: &str, source: &mut impl RenderSource) -> Option<VariableValue> {
    let value = match name {
        "date_local" => source.date(Zone::Local, time_format),
        "date_gmt" => source.date(Zone::Gmt, time_format),
        _ => source.variable(name)?,
    };
    Some(VariableValue::outside(name, value))
}

#[cfg(test)]
#[path = "render_tests.rs"]
mod tests;
