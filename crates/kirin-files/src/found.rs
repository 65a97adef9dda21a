//! The result of looking up a path: the value type of the open-file cache.

use std::io;
use std::rc::Rc;

use kirin_compress::{Coding, Codings};

use crate::config::FilesConfig;
use crate::entity_tag::EntityTag;
use crate::lookup::OpenedName;
use crate::made_variants::MadeVariants;
use crate::open_file_cache::Cacheable;
use crate::redirect::DirectoryRedirect;
use crate::representation::Representation;
use crate::root::OpenFile;

/// The result of looking up a path. It holds until the validity time is over.
#[derive(Clone)]
pub(crate) enum FileLookup {
    File(Rc<StaticFile>),
    /// A directory that was requested without the `/` at its end.
    Redirect(Rc<DirectoryRedirect>),
    /// No file. The next place of the route may have one.
    Absent,
    /// A file that visitors must not see: 403.
    Refused,
}

/// A file with the variants beside it.
pub(crate) struct StaticFile {
    pub(crate) name: OpenedName,
    content_type: String,
    original: Representation,
    /// The variants beside the file, in the order of [`Coding::ALL`].
    variants: [Option<Representation>; 3],
    /// The variants that Kirin makes. They are used only if there are none beside the file.
    pub(crate) made: MadeVariants,
}

/// The same file with its variants, opened but not read.
pub(crate) struct OpenedFile {
    pub(crate) name: OpenedName,
    pub(crate) content_type: String,
    pub(crate) original: OpenFile,
    pub(crate) variants: [Option<OpenFile>; 3],
}

impl Cacheable for FileLookup {
    fn bytes(&self) -> usize {
        match self {
            FileLookup::File(file) => {
                size_of::<StaticFile>()
                    + file.name.bytes()
                    + file.representations().map(Representation::bytes).sum::<usize>()
                    + file.made.bytes()
            }
            FileLookup::Redirect(redirect) => redirect.bytes(),
            FileLookup::Absent | FileLookup::Refused => 0,
        }
    }

    fn descriptors(&self) -> usize {
        match self {
            FileLookup::File(file) => {
                file.representations().filter(|r| r.file.holds_descriptor()).count()
            }
            FileLookup::Redirect(_) | FileLookup::Absent | FileLookup::Refused => 0,
        }
    }

    fn is_absence(&self) -> bool {
        matches!(self, FileLookup::Absent | FileLookup::Refused)
    }
}

impl StaticFile {
    /// Reads the opened file and its variants.
    pub(crate) fn read(
        opened: OpenedFile,
        config: &FilesConfig,
        small_file_bytes: usize,
    ) -> io::Result<Self> {
        let OpenedFile { name, content_type, original, variants } = opened;
        let size = original.state.size;
        let allowed = if variants.iter().any(Option::is_some) {
            Codings::NONE
        } else {
            MadeVariants::worthwhile(
                config.compress,
                &content_type,
                size,
                config.compressed_file_bytes,
            )
        };
        let varies = variants.iter().any(Option::is_some) || !allowed.is_empty();
        let read = |open, coding| {
            Representation::of(open, &content_type, coding, varies, small_file_bytes)
        };
        let original = read(original, None)?;
        let [brotli, zstd, gzip] = variants;
        let variant =
            |open: Option<OpenFile>, coding| open.map(|open| read(open, Some(coding))).transpose();
        let variants = [
            variant(brotli, Coding::Brotli)?,
            variant(zstd, Coding::Zstd)?,
            variant(gzip, Coding::Gzip)?,
        ];
        Ok(Self { name, content_type, original, variants, made: MadeVariants::of(allowed) })
    }

    /// Returns whether reading `opened` would give the same result. Then takes the time of the
    /// lookup.
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
            && self.name.takes(&opened.name)
    }

    /// Returns whether clients get different representations.
    pub(crate) fn varies(&self) -> bool {
        self.made.are_possible() || self.variants.iter().any(Option::is_some)
    }

    /// Returns the file without a coding.
    pub(crate) fn original(&self) -> &Representation {
        &self.original
    }

    /// Returns the media type.
    pub(crate) fn content_type(&self) -> &str {
        &self.content_type
    }

    /// Returns the tag of the variant in `coding`, even if the variant does not exist yet.
    pub(crate) fn made_tag(&self, coding: Coding) -> EntityTag {
        let file = &self.original.file;
        EntityTag::of(file.state(), file.is_settled(), Some(coding))
    }

    /// Returns the variant that lies beside the file.
    pub(crate) fn variant(&self, wanted: Coding) -> Option<&Representation> {
        let (_, variant) =
            Coding::ALL.iter().zip(&self.variants).find(|(coding, _)| **coding == wanted)?;
        variant.as_ref()
    }

    fn representations(&self) -> impl Iterator<Item = &Representation> {
        std::iter::once(&self.original).chain(self.variants.iter().flatten())
    }
}
