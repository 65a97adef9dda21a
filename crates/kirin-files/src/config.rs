//! The settings of a `files:DIR` place, and the reasons why a directory cannot be served.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kirin_compress::Codings;

use crate::media_type::MediaTypes;

/// Default of [`FilesConfig::compressed_file_bytes`].
const COMPRESSED_FILE_BYTES: u64 = 2 * 1024 * 1024;

/// The symbolic links that Kirin follows. It always follows relative links that stay inside the
/// root.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum FollowLinks {
    /// No links that lead out of the root.
    #[default]
    Inside,
    /// Links whose owner also owns their target.
    SameOwner,
    /// All links.
    All,
}

/// The settings of one `files:DIR` place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilesConfig {
    /// The directory. No path leads out of it, except by symbolic links that `follow_links` allows.
    pub root: PathBuf,
    /// The symbolic links out of the directory that Kirin follows. Default: none.
    pub follow_links: FollowLinks,
    /// Names that Kirin tries in order for a path that ends in `/`. Default: `index.html`.
    pub index: Vec<String>,
    /// Whether a directory without an index is shown as a list of its files. Default: no.
    pub listing: bool,
    /// Whether Kirin looks for variants beside a file (`FILE.br`, `FILE.zst`, `FILE.gz`). Default:
    /// yes.
    pub precompressed: bool,
    /// The media types of files.
    pub media_types: Arc<MediaTypes>,
    /// Codings of the variants that Kirin makes for files without variants beside them. Default:
    /// none.
    pub compress: Codings,
    /// The largest file, in bytes, that Kirin compresses. The variants count towards
    /// [`CacheLimits::bytes`].
    /// Default: 2 MiB, which is more than scripts have. Larger files should have variants beside
    /// them.
    pub compressed_file_bytes: u64,
}

impl FilesConfig {
    /// Returns the defaults for `root`.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            follow_links: FollowLinks::default(),
            index: vec!["index.html".into()],
            listing: false,
            precompressed: true,
            media_types: Arc::default(),
            compress: Codings::NONE,
            compressed_file_bytes: COMPRESSED_FILE_BYTES,
        }
    }
}

impl FilesConfig {
    /// Returns whether `name` can be in `index`.
    pub fn is_index_name(name: &str) -> bool {
        !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\0'])
    }
}

/// The limits of an open-file cache. Each event loop has one cache for all `files:` places, and one
/// for the files of applications.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheLimits {
    /// The most paths whose files are in memory, and the most paths without a file. Default:
    /// 10,000.
    pub paths: usize,
    /// Memory in bytes: contents, heads and paths. Default: 64 MiB.
    pub bytes: usize,
    /// The most open descriptors. Default: 1000.
    pub descriptors: usize,
    /// The largest file, in bytes, whose contents stay in memory without a descriptor. Larger files
    /// stay open, and the kernel sends them (sendfile). Default: 64 KiB.
    pub small_file_bytes: usize,
    /// How long Kirin uses an entry without a look at the file system. Default: 1 s. So a change
    /// shows at the next look. With 0 Kirin looks at every request.
    pub validity: Duration,
}

impl Default for CacheLimits {
    fn default() -> Self {
        Self {
            paths: 10_000,
            bytes: 64 << 20,
            descriptors: 1000,
            small_file_bytes: 64 << 10,
            validity: Duration::from_secs(1),
        }
    }
}

/// The reason why a directory cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    /// The directory does not exist, or may not be read.
    #[error("cannot open directory {}: {error}", path.display())]
    Root {
        /// The directory from the configuration.
        path: PathBuf,
        /// The error of the kernel.
        error: io::Error,
    },
    /// The path is a file.
    #[error("{} is not a directory", .0.display())]
    NotADirectory(PathBuf),
    /// The kernel (before Linux 5.6) or a sandbox has no openat2. Without it a symbolic link could
    /// lead outside.
    #[error("cannot serve {}: openat2 is not available (Linux 5.6 or later): {error}", path.display())]
    OpenAt2 {
        /// The directory from the configuration.
        path: PathBuf,
        /// The error of the kernel.
        error: io::Error,
    },
    /// An index name is a path.
    #[error("index {0:?} is not a file name: it must not be empty, contain `/` or start with `.`")]
    IndexName(String),
}
