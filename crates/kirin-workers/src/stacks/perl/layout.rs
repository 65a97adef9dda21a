//! Where a Perl interpreter keeps its stack: the word `stacks=perl:…` of a greeting.
//!
//! The adapter finds these numbers by looking at its own memory (`Kirin::StackLayout`), because
//! they differ between versions and builds of Perl. `docs/worker-protocol.md` lists them.

use crate::stacks::layout_word;

/// The largest offset of a field, in bytes.
const MAX_OFFSET: u64 = 4096;

/// The bytes of a stack (`struct stackinfo`) that have the fields.
pub(crate) const STACK_INFO_BYTES: u64 = 64;

/// The sizes that a context may have, in bytes.
const CONTEXT_BYTES: std::ops::RangeInclusive<u64> = 32..=1024;

/// Where a Perl interpreter keeps its stack. Addresses are those of the worker's memory; offsets
/// are in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PerlLayout {
    /// The address of the variable that points to the present statement (`PL_curcop`).
    pub(crate) cop: u64,
    /// The address of the variable that points to the present stack (`PL_curstackinfo`).
    pub(crate) stack_info: u64,
    /// In a stack: the address of its contexts.
    pub(crate) info_contexts: u64,
    /// In a stack: the index of its last context, 32 bits.
    pub(crate) info_index: u64,
    /// In a stack: the address of the stack below it.
    pub(crate) info_previous: u64,
    /// The size of a context.
    pub(crate) context_bytes: u64,
    /// The type of a context that is the call of a sub.
    pub(crate) context_sub: u8,
    /// In a context: the address of the statement that has called.
    pub(crate) context_cop: u64,
    /// In a context: the address of the sub.
    pub(crate) context_cv: u64,
    /// In a statement: its line, 32 bits.
    pub(crate) cop_line: u64,
    /// In a statement: the address of the name of its file, or of a glob with that name.
    pub(crate) cop_file: u64,
    /// Whether that is a glob.
    pub(crate) cop_file_is_glob: bool,
    /// In the body of a sub: the address of its glob, or of its name.
    pub(crate) cv_glob: u64,
    /// In the body of a sub: the address of its package.
    pub(crate) cv_stash: u64,
    /// The type of a value that is a glob.
    pub(crate) glob_type: u8,
    /// In the body of a glob: the address of its name.
    pub(crate) glob_name: u64,
    /// In the body of a glob: the address of its package.
    pub(crate) glob_stash: u64,
    /// Where a package has the address of its name: in its body, or behind its buckets.
    pub(crate) stash_name: u64,
    /// Whether that is behind its buckets.
    pub(crate) stash_name_is_in_buckets: bool,
}

impl PerlLayout {
    /// Parses the value of the word. Returns none for another language and for wrong numbers.
    pub(crate) fn parse(value: &str) -> Option<Self> {
        Self::from_numbers(&layout_word::numbers(value, "perl")?)
    }

    /// Returns the layout with the numbers of the word. Returns none if they cannot be right.
    fn from_numbers(numbers: &[u64]) -> Option<Self> {
        let [cop, stack_info, ref offsets @ ..] = *numbers else { return None };
        if offsets.iter().any(|offset| *offset > MAX_OFFSET) {
            return None;
        }
        let [
            info_contexts,
            info_index,
            info_previous,
            context_bytes,
            context_sub,
            context_cop,
            context_cv,
            cop_line,
            cop_file,
            cop_file_is_glob,
            cv_glob,
            cv_stash,
            glob_type,
            glob_name,
            glob_stash,
            stash_name,
            stash_name_is_in_buckets,
        ] = *offsets
        else {
            return None;
        };
        let fits = |offsets: [u64; 2], bytes| offsets.iter().all(|offset| offset + 8 <= bytes);
        if !CONTEXT_BYTES.contains(&context_bytes)
            || !fits([context_cop, context_cv], context_bytes)
            || !fits([info_contexts, info_previous], STACK_INFO_BYTES)
            || info_index + 4 > STACK_INFO_BYTES
        {
            return None;
        }
        Some(Self {
            cop,
            stack_info,
            info_contexts,
            info_index,
            info_previous,
            context_bytes,
            context_sub: u8::try_from(context_sub).ok()?,
            context_cop,
            context_cv,
            cop_line,
            cop_file,
            cop_file_is_glob: cop_file_is_glob != 0,
            cv_glob,
            cv_stash,
            glob_type: u8::try_from(glob_type).ok()?,
            glob_name,
            glob_stash,
            stash_name,
            stash_name_is_in_buckets: stash_name_is_in_buckets != 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The word of a Perl 5.36 with threads.
    const WORD: &str =
        "perl:5592f4c9f370,5592f4c9f380,8,20,10,68,9,10,48,24,30,0,38,20,9,20,28,20,0";

    #[test]
    fn the_numbers_have_their_order() {
        let layout = PerlLayout::parse(WORD).unwrap();
        assert_eq!((layout.cop, layout.stack_info), (0x5592_f4c9_f370, 0x5592_f4c9_f380));
        assert_eq!((layout.context_bytes, layout.context_sub), (0x68, 9));
        assert_eq!((layout.context_cop, layout.context_cv), (0x10, 0x48));
        assert_eq!((layout.glob_name, layout.glob_stash), (0x20, 0x28));
        assert!(!layout.cop_file_is_glob && !layout.stash_name_is_in_buckets);
    }

    #[test]
    fn other_words_are_no_layout() {
        for word in [
            "",
            "perl",
            "perl:",
            "perl:1,2,3",
            "ruby:1",
            // One number too many, one that is no number, one that is no offset.
            &format!("{WORD},1"),
            &WORD.replace(",0,", ",x,"),
            &WORD.replace(",68,", ",100000,"),
            // A stack that is too small for its fields.
            &WORD.replace(",8,20,10,", ",40,20,10,"),
            &WORD.replace(",8,20,10,", ",8,40,10,"),
            // A context that is too small for its fields.
            &WORD.replace(",68,", ",40,"),
            &WORD.replace(",68,", ",0,"),
            &WORD.replace(",9,", ",109,"),
        ] {
            assert_eq!(PerlLayout::parse(word), None, "{word}");
        }
    }
}
