//! Variants that nobody has laid beside a file: compressed when they are first asked for, and kept
//! with the file in the open-file cache. They go when the file has changed, as it is read anew
//! then.
//!
//! What is small is compressed at once; for the rest a thread does it, and until then clients get
//! the original.

use std::cell::RefCell;
use std::rc::Rc;

use bytes::Bytes;
use kirin_compress::{Coding, Codings, Effort, INLINE_BYTES, encode, is_compressible};

use crate::files::Files;
use crate::found::{Found, StaticFile};
use crate::representation::Representation;

/// Files that are compressed at a time, for each place and event loop. Nobody waits for one, so few
/// are enough.
const MAX_UNDERWAY: usize = 2;

/// The variants of one file. In the order of [`Coding::ALL`].
pub(crate) struct MadeVariants {
    allowed: Codings,
    variants: RefCell<[Made; 3]>,
}

#[derive(Clone)]
enum Made {
    /// Nobody has asked.
    Not,
    Underway,
    /// It would be no smaller.
    Useless,
    Is(Rc<Representation>),
}

impl MadeVariants {
    /// None yet; `allowed` may be.
    pub(crate) fn of(allowed: Codings) -> Self {
        Self { allowed, variants: RefCell::new([Made::Not, Made::Not, Made::Not]) }
    }

    /// The codings that are worth it for a file of this type and size.
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

    /// Whether `coding` may be made, or has been.
    pub(crate) fn may_have(&self, coding: Coding) -> bool {
        self.allowed.has(coding) && !matches!(self.at(coding), Made::Useless)
    }

    /// Whether there may be any.
    pub(crate) fn are_possible(&self) -> bool {
        !self.allowed.is_empty()
    }

    /// Memory taken.
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
    /// The variant of `file`, which was found at `path`; `None` if there is none yet, or it would
    /// be no smaller.
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
        let contents = file.original().file.contents();
        if let Some(contents) =
            contents.in_memory().filter(|contents| contents.len() <= INLINE_BYTES)
        {
            let variant = file.keep_variant(coding, encode(coding, Effort::Kept, contents).ok());
            self.cache().borrow_mut().weigh(path.as_bytes());
            return variant;
        }
        let underway = self.underway();
        if underway.get() < MAX_UNDERWAY {
            underway.set(underway.get() + 1);
            file.made.set(coding, Made::Underway);
            let (file, cache, underway) =
                (Rc::clone(file), Rc::clone(self.cache()), Rc::clone(underway));
            let path = path.to_owned();
            tokio::task::spawn_local(async move {
                let encoded = tokio::task::spawn_blocking(move || {
                    contents
                        .read()
                        .and_then(|contents| encode(coding, Effort::Kept, &contents))
                        .ok()
                });
                file.keep_variant(coding, encoded.await.ok().flatten());
                underway.set(underway.get() - 1);
                let mut cache = cache.borrow_mut();
                let is_kept =
                    |found: &Found| matches!(found, Found::File(kept) if Rc::ptr_eq(kept, &file));
                if cache.peek(path.as_bytes()).is_some_and(is_kept) {
                    cache.weigh(path.as_bytes());
                }
            });
        }
        None
    }
}

impl StaticFile {
    /// Takes what was encoded; `None` if that has failed. Gives the variant if it is of use.
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
