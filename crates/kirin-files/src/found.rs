//! What a path leads to; the value of the open-file cache.

use crate::accept_encoding::{AcceptEncoding, Coding};
use crate::open_file_cache::Kept;
use crate::redirect::Redirect;
use crate::representation::Representation;
use crate::root::OpenFile;
use std::io;
use std::rc::Rc;

/// What a path leads to, for as long as the validity time lasts.
#[derive(Clone)]
pub(crate) enum Found {
    File(Rc<StaticFile>),
    /// A directory, asked for without the `/` at its end.
    Redirect(Rc<Redirect>),
    /// Nothing of ours: the next place in the route may have it.
    Absent,
    /// Something that is not for visitors: 403.
    Refused,
}

/// A file with the variants beside it.
pub(crate) struct StaticFile {
    content_type: String,
    original: Representation,
    /// In the order of [`Coding::ALL`].
    variants: [Option<Representation>; 3],
}

/// The same, opened and not read.
pub(crate) struct OpenedFile {
    pub(crate) content_type: String,
    pub(crate) original: OpenFile,
    pub(crate) variants: [Option<OpenFile>; 3],
}

impl Kept for Found {
    fn bytes(&self) -> usize {
        match self {
            Found::File(file) => {
                size_of::<StaticFile>() + file.representations().map(Representation::bytes).sum::<usize>()
            }
            Found::Redirect(redirect) => redirect.bytes(),
            Found::Absent | Found::Refused => 0,
        }
    }

    fn descriptors(&self) -> usize {
        match self {
            Found::File(file) => file.representations().filter(|r| r.file.holds_descriptor()).count(),
            Found::Redirect(_) | Found::Absent | Found::Refused => 0,
        }
    }
}

impl StaticFile {
    /// Reads what was opened.
    pub(crate) fn read(opened: OpenedFile, small_file_bytes: usize) -> io::Result<Self> {
        let OpenedFile { content_type, original, variants } = opened;
        let varies = variants.iter().any(Option::is_some);
        let read = |open, coding| Representation::of(open, &content_type, coding, varies, small_file_bytes);
        let original = read(original, None)?;
        let [brotli, zstd, gzip] = variants;
        let variant = |open: Option<OpenFile>, coding| open.map(|open| read(open, Some(coding))).transpose();
        let variants =
            [variant(brotli, Coding::Brotli)?, variant(zstd, Coding::Zstd)?, variant(gzip, Coding::Gzip)?];
        Ok(Self { content_type, original, variants })
    }

    /// Whether reading `opened` would come to the same.
    pub(crate) fn is_unchanged(&self, opened: &OpenedFile) -> bool {
        let same = |ours: &Representation, theirs: &OpenFile| ours.file.is_still(&theirs.state);
        let variants = self.variants.iter().zip(&opened.variants);
        self.content_type == opened.content_type
            && same(&self.original, &opened.original)
            && variants.into_iter().all(|(ours, theirs)| match (ours, theirs) {
                (Some(ours), Some(theirs)) => same(ours, theirs),
                (None, None) => true,
                _ => false,
            })
    }

    /// The representation for a client that accepts these codings.
    pub(crate) fn select(&self, accept_encoding: Option<&[u8]>) -> &Representation {
        if self.variants.iter().all(Option::is_none) {
            return &self.original;
        }
        AcceptEncoding::parse(accept_encoding)
            .choose(|coding| self.variant(coding).is_some())
            .and_then(|coding| self.variant(coding))
            .unwrap_or(&self.original)
    }

    fn variant(&self, wanted: Coding) -> Option<&Representation> {
        let (_, variant) = Coding::ALL.iter().zip(&self.variants).find(|(coding, _)| **coding == wanted)?;
        variant.as_ref()
    }

    fn representations(&self) -> impl Iterator<Item = &Representation> {
        std::iter::once(&self.original).chain(self.variants.iter().flatten())
    }
}
