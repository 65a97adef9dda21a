//! What `files:DIR` can be told, and why a directory cannot be served.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use kirin_compress::Codings;

/// Default of [`FilesConfig::validity`].
pub(crate) const VALIDITY: Duration = Duration::from_secs(1);
/// Default of [`FilesConfig::cache_entries`].
pub(crate) const CACHE_ENTRIES: usize = 1000;
/// Default of [`FilesConfig::cache_bytes`].
pub(crate) const CACHE_BYTES: usize = 32 * 1024 * 1024;
/// Default of [`FilesConfig::small_file_bytes`].
pub(crate) const SMALL_FILE_BYTES: usize = 64 * 1024;
/// Default of [`FilesConfig::compressed_file_bytes`].
const COMPRESSED_FILE_BYTES: u64 = 2 * 1024 * 1024;

/// Which symbolic links are followed. Relative links that stay inside the root always are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FollowLinks {
    /// None that lead out of the root.
    #[default]
    Inside,
    /// Those that belong to the owner of what they lead to.
    SameOwner,
    /// All.
    All,
}

/// One `files:DIR` place. All limits are per event loop.
#[derive(Clone, Debug)]
pub struct FilesConfig {
    /// The directory. No path leads out of it; symbolic links only as `follow_links` says.
    pub root: PathBuf,
    /// Which symbolic links that lead out of the directory are followed. Default: none.
    pub follow_links: FollowLinks,
    /// Names tried in order for a path that ends in `/`. Default: `index.html`.
    pub index: Vec<String>,
    /// Whether a directory without an index is shown as a list of its files. Default: no.
    pub listing: bool,
    /// How long an answer from the cache is given without looking at the file system, absence
    /// included. Default: 1 s, so that a changed file shows at the next look while a busy one costs
    /// a few system calls a second; more gains nothing that can be measured. 0 looks at every
    /// request.
    pub validity: Duration,
    /// Paths kept in the open-file cache. An open descriptor counts as one, so this bounds those
    /// too. Default: 1000.
    pub cache_entries: usize,
    /// Memory of the open-file cache in bytes: contents, heads and paths. Default: 32 MiB.
    pub cache_bytes: usize,
    /// Files up to this size in bytes are kept in memory and need no descriptor; larger ones are
    /// kept open and sent by the kernel (sendfile). Default: 64 KiB.
    pub small_file_bytes: usize,
    /// Codings in which variants are made of files that have none beside them. Default: none.
    pub compress: Codings,
    /// Files up to this size in bytes are compressed; the variants count among `cache_bytes`.
    /// Default: 2 MiB, above the size of scripts; what is larger should have its variants beside
    /// it.
    pub compressed_file_bytes: u64,
}

impl FilesConfig {
    /// The defaults for `root`.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            follow_links: FollowLinks::default(),
            index: vec!["index.html".into()],
            listing: false,
            validity: VALIDITY,
            cache_entries: CACHE_ENTRIES,
            cache_bytes: CACHE_BYTES,
            small_file_bytes: SMALL_FILE_BYTES,
            compress: Codings::NONE,
            compressed_file_bytes: COMPRESSED_FILE_BYTES,
        }
    }
}

/// Why a directory cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    /// It is not there, or may not be read.
    #[error("cannot open directory {}: {error}", path.display())]
    Root {
        /// The directory as configured.
        path: PathBuf,
        /// What the kernel said.
        error: io::Error,
    },
    /// It is a file.
    #[error("{} is not a directory", .0.display())]
    NotADirectory(PathBuf),
    /// The kernel (before Linux 5.6) or a sandbox has no openat2, without which a symbolic link
    /// could lead outside.
    #[error("cannot serve {}: openat2 is not available (Linux 5.6 or later): {error}", path.display())]
    OpenAt2 {
        /// The directory as configured.
        path: PathBuf,
        /// What the kernel said.
        error: io::Error,
    },
    /// An index name that is a path.
    #[error("index {0:?} is not a file name: it must not be empty, contain `/` or start with `.`")]
    IndexName(String),
}
