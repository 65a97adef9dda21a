//! Variants of files that have none beside them. Kirin compresses such a file at the first request,
//! and keeps the variant with the file in the open-file cache. A variant goes when its file
//! changes, because the file is then read again.
//!
//! Small files are compressed at once. A thread compresses the others. Until it has finished,
//! clients get the original. It does not compress a file that a full cache has not admitted,
//! because the variant would be lost with the file.

use std::borrow::Cow;
use std::cell::RefCell;
use std::rc::Rc;

use bytes::Bytes;
use kirin_compress::{Coding, Codings, Effort, INLINE_BYTES, encode, is_compressible};

use crate::file_name::FileName;
use crate::files::Files;
use crate::found::StaticFile;
use crate::representation::Representation;

/// The most files that each place and event loop compresses at the same time. No client waits for a
/// variant, so a few are enough.
const MAX_UNDERWAY: usize = 2;

/// The variants of one file, in the order of [`Coding::ALL`].
pub(crate) struct MadeVariants {
    allowed: Codings,
    variants: RefCell<[Made; 3]>,
}

#[derive(Clone)]
enum Made {
    /// No client has asked for this variant.
    Not,
    Underway,
    /// The variant would not be smaller.
    Useless,
    Is(Rc<Representation>),
}

impl MadeVariants {
    /// Starts without variants. `allowed` are the codings that may be made.
    pub(crate) fn of(allowed: Codings) -> Self {
        Self { allowed, variants: RefCell::new([Made::Not, Made::Not, Made::Not]) }
    }

    /// Returns the codings that are worth it for a file of this type and size.
    pub(crate) fn worthwhile(
        allowed: Codings,
        content_type: &str,
        size: u64,
        limit_bytes: u64,
    ) -> Codings {
        let is_worthwhile = (kirin_compress::MIN_BYTES..=limit_bytes).contains(&size)
            && is_compressible(content_type.as_bytes());
        if is_worthwhile { allowed } else { Codings::NONE }
    }

    /// Returns whether `coding` exists or may be made.
    pub(crate) fn may_have(&self, coding: Coding) -> bool {
        self.allowed.has(coding) && !matches!(self.at(coding), Made::Useless)
    }

    /// Returns whether any variant may exist.
    pub(crate) fn are_possible(&self) -> bool {
        !self.allowed.is_empty()
    }

    /// Returns the memory of the variants in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let bytes = |made: &Made| match made {
            Made::Is(variant) => variant.bytes(),
            Made::Not | Made::Underway | Made::Useless => 0,
        };
        self.variants.borrow().iter().map(bytes).sum()
    }

    fn at(&self, coding: Coding) -> Made {
        self.variants.borrow()[coding.index()].clone()
    }

    fn set(&self, coding: Coding, made: Made) {
        self.variants.borrow_mut()[coding.index()] = made;
    }
}

impl Files {
    /// Returns the variant of `file`, which was found at `path`. Returns `None` if it does not
    /// exist yet, or would not be smaller.
    pub(crate) fn make_variant(
        &self,
        path: &str,
        file: &Rc<StaticFile>,
        coding: Coding,
    ) -> Option<Rc<Representation>> {
        match file.made.at(coding) {
            Made::Is(variant) => return Some(variant),
            Made::Underway | Made::Useless => return None,
            Made::Not => {}
        }
        let key = cache_key(path);
        let contents = file.original().file.contents();
        if let Some(contents) =
            contents.in_memory().filter(|contents| contents.len() <= INLINE_BYTES)
        {
            let variant = file.keep_variant(coding, encode(coding, Effort::Kept, contents).ok());
            self.cache().found.borrow_mut().weigh(self.id(), key.as_bytes());
            return variant;
        }
        if !self.cache().keeps(self.id(), &key, file) {
            return None;
        }
        let underway = self.underway();
        if underway.get() < MAX_UNDERWAY {
            underway.set(underway.get() + 1);
            file.made.set(coding, Made::Underway);
            let (file, cache, underway) =
                (Rc::clone(file), Rc::clone(self.cache()), Rc::clone(underway));
            let (place, key) = (self.id(), key.into_owned());
            tokio::task::spawn_local(async move {
                let encoded = tokio::task::spawn_blocking(move || {
                    contents
                        .read()
                        .and_then(|contents| encode(coding, Effort::Kept, &contents))
                        .ok()
                });
                file.keep_variant(coding, encoded.await.ok().flatten());
                underway.set(underway.get() - 1);
                if cache.keeps(place, &key, &file) {
                    cache.found.borrow_mut().weigh(place, key.as_bytes());
                }
            });
        }
        None
    }
}

/// Returns the path under which the cache keeps the file that was found at `path`.
fn cache_key(path: &str) -> Cow<'_, str> {
    FileName::parse(path).map_or(Cow::Borrowed(path), |name| name.cache_key(path))
}

impl StaticFile {
    /// Stores the encoded bytes, which are `None` after a failure. Returns the variant if it is
    /// useful.
    fn keep_variant(&self, coding: Coding, encoded: Option<Vec<u8>>) -> Option<Rc<Representation>> {
        let smaller =
            encoded.filter(|encoded| (encoded.len() as u64) < self.original().file.size());
        let variant = smaller.map(|mut encoded| {
            encoded.shrink_to_fit();
            Rc::new(self.original().coded(self.content_type(), coding, Bytes::from(encoded)))
        });
        self.made.set(coding, variant.clone().map_or(Made::Useless, Made::Is));
        variant
    }
}
