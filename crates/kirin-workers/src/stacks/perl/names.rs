//! The text of a call: `Package::sub (file:line)`.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use super::layout::PerlLayout;
use super::walk::Call;
use crate::stacks::call_text::{CallText, plain};
use crate::stacks::memory::Memory;

/// The offset of the body's address in the head of a value (`struct sv`).
const BODY: u64 = 0;
/// The offset of the flags in the head of a value. The low byte is the type.
const FLAGS: u64 = 12;
/// The offset of the buckets' address in the head of a hash.
const BUCKETS: u64 = 16;
/// The offset of the highest bucket in the body of a hash.
const HIGHEST_BUCKET: u64 = 24;

/// The offset of the length in a name (`struct hek`).
const NAME_LENGTH: u64 = 4;
/// The offset of the bytes in a name.
const NAME_BYTES: u64 = 8;

/// The longest name of a package, sub or glob, in bytes. What says to be longer is no name.
const MAX_NAME_BYTES: usize = 1024;
/// The longest name of a file, in bytes. A longer one is cut.
const MAX_FILE_BYTES: usize = 1024;
/// How many bytes of a file name are read at once.
const FILE_CHUNK_BYTES: usize = 64;

/// The most calls whose text is kept.
const MAX_KNOWN: usize = 16 * 1024;

/// A call as text.
#[derive(Clone)]
pub(crate) struct Frame {
    text: Arc<str>,
    /// The length of the sub's name, with which the text begins.
    sub_bytes: usize,
}

impl Frame {
    pub(crate) fn text(&self) -> Arc<str> {
        Arc::clone(&self.text)
    }

    /// Returns whether this is a call of the sub.
    pub(crate) fn sub_is(&self, name: &str) -> bool {
        self.text.get(..self.sub_bytes) == Some(name)
    }
}

/// The texts of calls that have been seen.
///
/// Perl uses the memory of a sub again that was freed, such as a closure, but then another
/// statement runs in it. So the two addresses together stand for the text.
pub(crate) struct FrameNames {
    known: HashMap<Call, Frame>,
    text: CallText,
}

impl FrameNames {
    pub(crate) fn new(directory: Option<&Path>) -> Self {
        Self { known: HashMap::new(), text: CallText::new(directory) }
    }

    /// Returns the text of a call.
    pub(crate) fn frame(&mut self, memory: &impl Memory, layout: &PerlLayout, call: Call) -> Frame {
        if let Some(frame) = self.known.get(&call) {
            return frame.clone();
        }
        let sub = sub_name(memory, layout, call.cv).unwrap_or_else(|| "?".into());
        let line = memory.half_word(call.cop.wrapping_add(layout.cop_line)).unwrap_or(0);
        let file = file_name(memory, layout, call.cop).unwrap_or_else(|| "?".into());
        let sub_bytes = plain(&sub).len();
        let frame = Frame { text: self.text.of(&sub, &file, line), sub_bytes };
        if self.known.len() >= MAX_KNOWN {
            self.known.clear();
        }
        self.known.insert(call, frame.clone());
        frame
    }
}

/// Returns the name of a sub with its package.
fn sub_name(memory: &impl Memory, layout: &PerlLayout, cv: u64) -> Option<String> {
    let body = memory.word(cv.wrapping_add(BODY))?;
    let named = memory.word(body.wrapping_add(layout.cv_glob))?;
    let flags = memory.half_word(named.wrapping_add(FLAGS))?;
    let is_glob = flags.to_le_bytes()[0] == layout.glob_type;
    let glob_name = || {
        let glob = memory.word(named.wrapping_add(BODY))?;
        let stash = memory.word(glob.wrapping_add(layout.glob_stash))?;
        Some((stash, name(memory, memory.word(glob.wrapping_add(layout.glob_name))?)?))
    };
    // A sub without a glob has its name itself.
    let own_name =
        || Some((memory.word(body.wrapping_add(layout.cv_stash))?, name(memory, named)?));
    let (stash, sub) =
        if is_glob { glob_name().or_else(own_name)? } else { own_name().or_else(glob_name)? };
    let package = stash_name(memory, layout, stash).unwrap_or_else(|| "?".into());
    Some(format!("{package}::{sub}"))
}

/// Returns the name of a package.
fn stash_name(memory: &impl Memory, layout: &PerlLayout, stash: u64) -> Option<String> {
    let body = memory.word(stash.wrapping_add(BODY))?;
    let place = if layout.stash_name_is_in_buckets {
        let buckets = memory.word(stash.wrapping_add(BUCKETS))?;
        let highest = memory.word(body.wrapping_add(HIGHEST_BUCKET))?;
        buckets.wrapping_add(highest.wrapping_add(1).wrapping_mul(8))
    } else {
        body
    };
    let address = memory.word(place.wrapping_add(layout.stash_name))?;
    // A package with several names has a list of them.
    name(memory, address).or_else(|| name(memory, memory.word(address)?))
}

/// Returns the file of a statement.
fn file_name(memory: &impl Memory, layout: &PerlLayout, cop: u64) -> Option<String> {
    let address = memory.word(cop.wrapping_add(layout.cop_file))?;
    if !layout.cop_file_is_glob {
        return text(memory, address);
    }
    let glob = memory.word(address.wrapping_add(BODY))?;
    let name = name(memory, memory.word(glob.wrapping_add(layout.glob_name))?)?;
    // perlguts: the glob of a file is named `_<FILE`.
    Some(name.strip_prefix("_<").unwrap_or(&name).to_owned())
}

/// Returns a name with its length (`struct hek`).
fn name(memory: &impl Memory, address: u64) -> Option<String> {
    let length = memory.half_word(address.wrapping_add(NAME_LENGTH))? as usize;
    if !(1..=MAX_NAME_BYTES).contains(&length) {
        return None;
    }
    let mut bytes = vec![0; length];
    memory
        .read(address.wrapping_add(NAME_BYTES), &mut bytes)
        .then(|| String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns the text up to the next NUL.
fn text(memory: &impl Memory, address: u64) -> Option<String> {
    let mut text = Vec::new();
    while text.len() < MAX_FILE_BYTES {
        let at = address.wrapping_add(text.len() as u64);
        // A read must not reach into the next page, which may not exist.
        let length = FILE_CHUNK_BYTES - (at % FILE_CHUNK_BYTES as u64) as usize;
        let mut bytes = [0; FILE_CHUNK_BYTES];
        if !memory.read(at, &mut bytes[..length]) {
            return None;
        }
        let bytes = &bytes[..length];
        if let Some(end) = memchr::memchr(0, bytes) {
            text.extend_from_slice(&bytes[..end]);
            break;
        }
        text.extend_from_slice(bytes);
    }
    Some(String::from_utf8_lossy(&text).into_owned())
}

#[cfg(test)]
#[path = "names_tests.rs"]
mod tests;
