//! Directories without variants. If no name in a directory ends in `.br`, `.zst` or `.gz`, a lookup
//! need not ask for the variants of each file.
//!
//! Reading all names costs as much as many such questions. So Kirin reads them only after some
//! lookups in the same state of the directory.

use std::cell::Cell;
use std::time::Instant;

use kirin_compress::Coding;
use rustix::fs::{Dir, OFlags};
use rustix::io::Errno;

use crate::directory::{ChangeCount, MAX_CONFIRMED};
use crate::root::{FilesRoot, OPEN};

/// The number of lookups in a directory before its names are read.
const READ_AFTER: u8 = 16;

/// The most names that are read. In a larger directory each lookup asks for the variants.
const MAX_NAMES: usize = 4096;

/// What is known of the names in a directory.
#[derive(Default)]
pub(crate) struct VariantNames {
    known: Cell<Option<KnownNames>>,
}

/// What is known of the names in one state of a directory.
#[derive(Clone, Copy)]
struct KnownNames {
    change_count: ChangeCount,
    since: Instant,
    names: Names,
}

#[derive(Clone, Copy)]
enum Names {
    Unread {
        lookups: u8,
    },
    WithoutVariants,
    /// The directory has a name of a variant, or too many names, or cannot be read.
    Unknown,
}

impl VariantNames {
    /// Returns since when the directory `name` is known to have no variants. The directory must
    /// have been looked at before, with the result `change_count`.
    pub(crate) fn absent_since(
        &self,
        root: &FilesRoot,
        name: &[u8],
        change_count: ChangeCount,
        now: Instant,
    ) -> Option<Instant> {
        let is_current = |known: &KnownNames| {
            known.change_count == change_count
                && now.saturating_duration_since(known.since) < MAX_CONFIRMED
        };
        let new = KnownNames { change_count, since: now, names: Names::Unread { lookups: 0 } };
        let known = self.known.get().filter(is_current).unwrap_or(new);
        let known = match known.names {
            Names::Unread { lookups: READ_AFTER } => {
                let names = match has_variants(root, name) {
                    Ok(false) => Names::WithoutVariants,
                    Ok(true) | Err(_) => Names::Unknown,
                };
                KnownNames { since: now, names, ..known }
            }
            Names::Unread { lookups } => {
                KnownNames { names: Names::Unread { lookups: lookups + 1 }, ..known }
            }
            Names::WithoutVariants | Names::Unknown => known,
        };
        self.known.set(Some(known));
        matches!(known.names, Names::WithoutVariants).then_some(known.since)
    }
}

/// Returns whether the directory `name` may have variants.
fn has_variants(root: &FilesRoot, name: &[u8]) -> Result<bool, Errno> {
    let directory = root.open_with(name, OPEN.union(OFlags::DIRECTORY))?;
    for (count, entry) in Dir::new(directory)?.enumerate() {
        if count == MAX_NAMES || is_variant(entry?.file_name().to_bytes()) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns whether a file with this name may be a variant. Some file systems take upper and lower
/// case for the same.
fn is_variant(name: &[u8]) -> bool {
    Coding::ALL.iter().any(|coding| {
        let suffix = file_suffix(*coding);
        let end = name.len().checked_sub(suffix.len()).and_then(|start| name.get(start..));
        end.is_some_and(|end| end.eq_ignore_ascii_case(suffix))
    })
}

/// Returns the extension of a variant's name.
pub(crate) fn file_suffix(coding: Coding) -> &'static [u8] {
    match coding {
        Coding::Brotli => b".br",
        Coding::Zstd => b".zst",
        Coding::Gzip => b".gz",
    }
}

#[cfg(test)]
#[path = "variant_names_tests.rs"]
mod tests;
