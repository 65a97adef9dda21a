//! The limit on open files. Every connection needs a descriptor.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The most descriptors that are kept for files, workers and libraries.
const OTHER_DESCRIPTORS: u64 = 512;

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

/// Returns how many connections the limit allows: all descriptors but an eighth, or but
/// [`OTHER_DESCRIPTORS`] if that is less.
pub fn default_connections() -> usize {
    let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from(descriptors - OTHER_DESCRIPTORS.min(descriptors / 8)).unwrap_or(usize::MAX)
}
