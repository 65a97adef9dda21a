//! The limit on open files. Every connection needs a descriptor.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The most descriptors that are kept for workers and libraries.
const OTHER_DESCRIPTORS: usize = 512;

/// Descriptors of a store alone that are not for clients: listeners, event queues, a snapshot.
const SPARE_DESCRIPTORS: u64 = 64;

/// Raises the soft limit, which is 1,024 by tradition, to the hard limit.
pub fn raise() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::warn!(%error, "the limit on open files stays at {:?}", limit.current);
    }
}

/// Logs a warning if the hard limit does not allow so many connections.
pub fn check(connections: usize) {
    let wanted = connections as u64 + SPARE_DESCRIPTORS;
    if let Some(descriptors) = getrlimit(Resource::Nofile).maximum
        && descriptors < wanted
    {
        tracing::warn!(connections, descriptors, "fewer file descriptors than -c asks for");
    }
}

/// The part of the limit that all caches of open files may take by default: one in so many.
const FILES_PART: usize = 16;

/// The caches of open files on one event loop: for `files:` places, and for files of applications.
const FILE_CACHES: usize = 2;

/// Returns how many descriptors each cache of open files may have by default: its share of a
/// sixteenth of the limit, but at most `paths`.
pub fn default_file_descriptors(threads: usize, paths: usize) -> usize {
    (current() / FILES_PART / (threads * FILE_CACHES).max(1)).min(paths)
}

/// Returns how many connections the limit allows: all descriptors but those of `files` on each of
/// `threads`, and but an eighth, or but [`OTHER_DESCRIPTORS`] if that is less.
pub fn default_connections(threads: usize, files: usize) -> usize {
    let descriptors = current();
    let for_files = files.saturating_mul(threads * FILE_CACHES).min(descriptors / 2);
    descriptors - for_files - OTHER_DESCRIPTORS.min(descriptors / 8)
}

fn current() -> usize {
    let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from(descriptors).unwrap_or(usize::MAX)
}
