//! The space for request bodies and slow responses, which Kirin keeps in files without a name.

use std::path::Path;

use kirin_config::Config;

/// Logs a warning if the directory of temporary files has less room than Kirin may use of it.
pub fn check(config: &Config) {
    if config.apps.is_empty() && config.upstreams.is_empty() {
        return;
    }
    let directory = std::env::temp_dir();
    let allowed = config.client_disk_bytes;
    // A directory that is not there is logged with the first request that needs it.
    let Some(free) = free_bytes(&directory).filter(|free| *free < allowed) else { return };
    tracing::warn!(
        directory = %directory.display(),
        free_mb = free >> 20,
        client_disk_mb = allowed >> 20,
        "less space than `limits.client_disk` for large request bodies and for responses to slow \
         clients; a body without space is answered 507: set TMPDIR to a directory with more space, \
         or `limits.client_disk` to less than there is"
    );
}

/// Returns how many bytes a file system has left for this user, or `None` if that is unknown.
fn free_bytes(directory: &Path) -> Option<u64> {
    let state = rustix::fs::statvfs(directory).ok()?;
    Some(state.f_bavail.saturating_mul(state.f_frsize))
}
