//! The calls on the stack of a CPython interpreter.
//!
//! Each call has a frame, which refers to the frame that has called. The state of the thread
//! refers to the innermost frame, in some versions by an entry on the stack of C. Code in C has no
//! frame, but when it calls Python, it may leave one that is no call.

use super::frame_spans::FrameSpans;
use super::layout::{Instruction, PythonLayout};
use crate::stacks::memory::Memory;
use crate::stacks::stack_error::StackError;

/// How often a stack is read again of which addresses are not known, or no call stays the same.
const TRIES: usize = 20;

/// The most frames that are read, the innermost ones.
const MAX_FRAMES: usize = 400;

/// The most calls that are returned, the innermost ones.
const MAX_CALLS: usize = 200;

/// The most frames that are kept beside those of the last stack, and the most entries.
const MAX_OLD_FRAMES: usize = 16;
const MAX_ENTRIES: usize = 8;

/// The owner of a frame that is no call (`FRAME_OWNED_BY_CSTACK`).
const OWNED_BY_C: u8 = 3;

/// A call on the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Call {
    /// The address of its code.
    pub(crate) code: u64,
    /// The instruction that runs, as the frame has it ([`Instruction`]).
    pub(crate) instruction: u64,
}

/// What a frame has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Frame {
    call: Call,
    /// The address of the frame that has called; 0 if there is none.
    previous: u64,
    is_call: bool,
}

impl Frame {
    fn parse(layout: &PythonLayout, bytes: &[u8]) -> Option<Self> {
        let word = |offset: u64| {
            let bytes = bytes.get(offset as usize..)?.first_chunk()?;
            Some(u64::from_ne_bytes(*bytes))
        };
        let instruction = word(layout.frame_instruction)?;
        let instruction = match layout.instruction {
            Instruction::Address => instruction,
            // The field has 32 bits.
            Instruction::Bytes | Instruction::Count => {
                let bytes = bytes.get(layout.frame_instruction as usize..)?.first_chunk()?;
                u32::from_ne_bytes(*bytes).into()
            }
        };
        let owner = match layout.frame_owner {
            Some(owner) => Some(*bytes.get(owner as usize)?),
            None => None,
        };
        Some(Self {
            call: Call { code: word(layout.frame_code)?, instruction },
            previous: word(layout.frame_previous)?,
            is_call: owner != Some(OWNED_BY_C),
        })
    }
}

/// A frame that was read as part of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Link {
    /// Where its address is among the known ones.
    index: usize,
    frame: Frame,
}

impl Link {
    /// Returns whether it is the same frame of the same function, in any instruction.
    fn has_same_code(&self, other: &Self) -> bool {
        let (frame, others) = (self.frame, other.frame);
        self.index == other.index
            && (frame.call.code, frame.previous) == (others.call.code, others.previous)
    }
}

/// What is at the known addresses.
struct Image {
    head: [u8; 8],
    entries: Vec<[u8; 8]>,
    /// The frames, as [`FrameSpans`] places them.
    frames: Vec<u8>,
}

/// What must be known to follow a stack.
enum Unknown {
    Entry(u64),
    Frame(u64),
}

/// Reads the calls of one process again and again.
///
/// The process runs meanwhile, and a call may take less time than to read it. So all frames are
/// read with one system call, twice: first inwards and then outwards. The inner frames, which
/// change most, are then read within the shortest time. That needs the addresses of the last time.
/// Most calls use the memory of earlier ones again.
///
/// What has changed between the two reads is left out, and is not read again: that would find long
/// calls more often than short ones.
#[derive(Default)]
pub(crate) struct Walk {
    /// The addresses of entries, the latest first.
    entries: Vec<u64>,
    /// The addresses of the frames of the last stack, the innermost first, and of some others.
    frames: Vec<u64>,
}

impl Walk {
    /// Returns the calls, the outermost first, without those outside of the function that serves.
    pub(crate) fn calls(
        &mut self,
        memory: &impl Memory,
        layout: &PythonLayout,
    ) -> Result<Vec<Call>, StackError> {
        let mut rootless = Vec::new();
        for _ in 0..TRIES {
            let spans = FrameSpans::of(&self.frames, layout.frame_bytes);
            let Some([inwards, outwards]) = self.read(memory, layout, &spans) else {
                // The memory of a frame is gone, or all of it is.
                *self = Self::default();
                memory.word(layout.head).ok_or(StackError::NoStack)?;
                continue;
            };
            let links = |image| self.links(image, layout, &spans);
            match links(&inwards).and_then(|first| Ok((first, links(&outwards)?))) {
                Ok((first, second)) => {
                    let stable = unchanged(&first, &second);
                    let is_complete = stable.len() == first.len() && stable.len() == second.len();
                    let calls = calls(stable, layout);
                    self.keep(&first);
                    // A generator has no caller for a moment when it begins or ends.
                    let has_root = stable.len() != 1 || calls.is_empty();
                    if has_root && (is_complete || !calls.is_empty()) {
                        return Ok(calls);
                    }
                    rootless = calls;
                }
                Err(Unknown::Entry(entry)) => {
                    self.entries.insert(0, entry);
                    self.entries.truncate(MAX_ENTRIES);
                }
                Err(Unknown::Frame(frame)) => self.follow(memory, layout, frame),
            }
        }
        if rootless.is_empty() { Err(StackError::Unstable) } else { Ok(rootless) }
    }

    /// Reads what is at the known addresses, twice. Returns none if that is not memory.
    fn read(
        &self,
        memory: &impl Memory,
        layout: &PythonLayout,
        spans: &FrameSpans,
    ) -> Option<[Image; 2]> {
        let [mut inwards, mut outwards] = [(); 2].map(|()| Image {
            head: [0; 8],
            entries: vec![[0; 8]; self.entries.len()],
            frames: vec![0; spans.bytes()],
        });
        let entries = self.entries.iter();
        let entries = entries.map(|entry| entry.wrapping_add(layout.entry_frame.unwrap_or(0)));
        let mut parts = spans.parts(&mut inwards.frames);
        parts.reverse();
        parts.extend(entries.clone().zip(inwards.entries.iter_mut().map(<[u8; 8]>::as_mut_slice)));
        parts.push((layout.head, &mut inwards.head));
        parts.push((layout.head, &mut outwards.head));
        parts.extend(entries.zip(outwards.entries.iter_mut().map(<[u8; 8]>::as_mut_slice)));
        parts.append(&mut spans.parts(&mut outwards.frames));
        memory.read_all(&mut parts).then_some([inwards, outwards])
    }

    /// Returns the frames of a stack, the innermost first, up to the function that serves.
    fn links(
        &self,
        image: &Image,
        layout: &PythonLayout,
        spans: &FrameSpans,
    ) -> Result<Vec<Link>, Unknown> {
        let mut next = self.innermost(image, layout)?;
        let (mut links, mut calls) = (Vec::<Link>::new(), 0);
        while next != 0 && links.len() < MAX_FRAMES && calls < MAX_CALLS {
            // Mostly it is the frame behind the last one.
            let behind = links.last().map_or(0, |last| last.index + 1);
            let index = if self.frames.get(behind) == Some(&next) {
                behind
            } else {
                let found = self.frames.iter().position(|frame| *frame == next);
                found.ok_or(Unknown::Frame(next))?
            };
            let bytes = image.frames.get(spans.place(index)..).unwrap_or_default();
            let Some(frame) = Frame::parse(layout, bytes) else { break };
            links.push(Link { index, frame });
            if layout.serving.contains(&frame.call.code) {
                break;
            }
            calls += usize::from(frame.is_call);
            next = frame.previous;
        }
        Ok(links)
    }

    /// Returns the address of the innermost frame.
    fn innermost(&self, image: &Image, layout: &PythonLayout) -> Result<u64, Unknown> {
        let head = u64::from_ne_bytes(image.head);
        if layout.entry_frame.is_none() {
            return Ok(head);
        }
        let index = self.entries.iter().position(|entry| *entry == head);
        let frame = index.and_then(|index| image.entries.get(index));
        frame.map(|frame| u64::from_ne_bytes(*frame)).ok_or(Unknown::Entry(head))
    }

    /// Adds the frames from `frame` outwards, up to one that is known.
    fn follow(&mut self, memory: &impl Memory, layout: &PythonLayout, mut frame: u64) {
        let mut found = Vec::new();
        let mut bytes = vec![0; layout.frame_bytes];
        while frame != 0
            && found.len() < MAX_FRAMES
            && !self.frames.contains(&frame)
            && !found.contains(&frame)
            && memory.read(frame, &mut bytes)
        {
            found.push(frame);
            let Some(read) = Frame::parse(layout, &bytes) else { break };
            if layout.serving.contains(&read.call.code) {
                break;
            }
            frame = read.previous;
        }
        found.append(&mut self.frames);
        found.truncate(MAX_FRAMES + 2 * MAX_OLD_FRAMES);
        self.frames = found;
    }

    /// Keeps the used frames in their order, and some others: inner ones, which come again when a
    /// function is called again, and any others behind all.
    fn keep(&mut self, used: &[Link]) {
        let used: Vec<usize> = used.iter().map(|link| link.index).collect();
        let first = used.first().copied().filter(|_| used.is_sorted()).unwrap_or(0);
        let order = (first.saturating_sub(MAX_OLD_FRAMES)..first).chain(used.iter().copied());
        let others = (first..self.frames.len()).filter(|index| !used.contains(index));
        let order = order.chain(others.take(MAX_OLD_FRAMES));
        self.frames = order.filter_map(|index| self.frames.get(index).copied()).collect();
    }
}

/// Returns the outer frames that two reads show alike. The innermost call may have gone on
/// meanwhile.
fn unchanged<'a>(first: &'a [Link], second: &[Link]) -> &'a [Link] {
    let pairs = first.iter().rev().zip(second.iter().rev());
    let mut count = pairs.take_while(|(first, second)| first == second).count();
    if let ([one, outer @ ..], [other, ..]) = (first, second)
        && first.len() == second.len()
        && outer.len() == count
        && one.has_same_code(other)
    {
        count += 1;
    }
    first.get(first.len() - count..).unwrap_or_default()
}

/// Returns the calls of frames, the outermost first, without that of the function that serves.
fn calls(links: &[Link], layout: &PythonLayout) -> Vec<Call> {
    let frames = links.iter().rev().map(|link| link.frame);
    let calls = frames.filter(|frame| frame.is_call).map(|frame| frame.call);
    calls.filter(|call| !layout.serving.contains(&call.code)).collect()
}

#[cfg(test)]
#[path = "walk_tests.rs"]
mod tests;
