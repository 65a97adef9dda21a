//! The names of apps and upstreams.

use crate::source::{ConfigError, ConfigSource};
use crate::written::Written;

/// The longest name of an app or upstream, in bytes.
const MAX_NAME_BYTES: usize = 64;

/// Checks the name of an app or an upstream, which `kind` says.
pub fn check_name(
    kind: &str,
    name: &Written<String>,
    source: &ConfigSource,
) -> Result<(), ConfigError> {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if !name.is_empty() && name.len() <= MAX_NAME_BYTES && name.bytes().all(is_name) {
        return Ok(());
    }
    let message = format!(
        "{kind} name `{}`: allowed are 1 to {MAX_NAME_BYTES} letters, digits, `-` and `_`",
        name.as_str()
    );
    Err(source.error(name.span(), message))
}
