//! Files with a secret.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::source::{ConfigError, ConfigSource};
use crate::written::Written;

/// The largest file with a secret, in bytes.
const MAX_FILE_BYTES: u64 = 4096;

/// Returns the text in a file, without blanks around it. `make_one` says how to make a file that is
/// not there. The error never has a part of the text.
pub fn read_secret(path: &Path, make_one: &str) -> Result<Vec<u8>, String> {
    let cannot = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => format!("cannot be read: {error}; {make_one}"),
        _ => format!("cannot be read: {error}"),
    };
    let metadata = std::fs::metadata(path).map_err(cannot)?;
    if !metadata.is_file() || metadata.len() > MAX_FILE_BYTES {
        return Err(format!("is not a file of at most {MAX_FILE_BYTES} bytes"));
    }
    // A group may read it: with `user`, the file belongs to root and to the group of that user.
    if metadata.permissions().mode() & 0o007 != 0 {
        let path = path.display();
        return Err(format!(
            "every user of this machine can use it, and it protects secrets; \
             `chmod o-rwx {path}` helps if nobody else has read it"
        ));
    }
    let text = std::fs::read(path).map_err(cannot)?;
    Ok(text.trim_ascii().to_vec())
}

/// Returns the path of a file that the configuration names with `key`, and the secret that
/// `secret_in` finds there.
pub fn named_secret<S>(
    file: &Written<String>,
    key: &str,
    secret_in: fn(&Path) -> Result<S, String>,
    source: &ConfigSource,
) -> Result<(PathBuf, S), ConfigError> {
    let path = source.path(file.as_str());
    match secret_in(&path) {
        Ok(secret) => Ok((path, secret)),
        Err(problem) => {
            Err(source.error(file.span(), format!("`{key}`: {}: {problem}", path.display())))
        }
    }
}
