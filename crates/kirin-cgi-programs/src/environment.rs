//! The environment of a program: the meta-variables of RFC 3875, those that other web servers add,
//! and those of the route. Nothing of Kirin's own environment but `PATH`.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use kirin_cgi::RequestBlock;

/// `PATH`, if Kirin has none.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// The names and values of an environment. If a name is there twice, the later value counts.
pub(crate) type Variables = Vec<(OsString, OsString)>;

/// Returns the environment of the program `file` for a request. `content_length` is the length of
/// its body in bytes; `None` if it has none. `own` are the variables of the route, which replace
/// others.
pub(crate) fn variables(
    block: &RequestBlock,
    file: &Path,
    content_length: Option<u64>,
    own: &[(String, String)],
) -> Variables {
    let path = std::env::var_os("PATH").unwrap_or_else(|| DEFAULT_PATH.into());
    let mut variables = vec![("PATH".into(), path)];
    let os = |bytes: &[u8]| OsStr::from_bytes(bytes).to_owned();
    variables.extend(block.variables().map(|(name, value)| (os(name), os(value))));
    variables.extend([
        ("GATEWAY_INTERFACE".into(), "CGI/1.1".into()),
        ("SERVER_SOFTWARE".into(), "kirin".into()),
        ("SCRIPT_FILENAME".into(), file.as_os_str().to_owned()),
        // A PHP that was built with force-cgi-redirect refuses to run without it.
        ("REDIRECT_STATUS".into(), "200".into()),
    ]);
    if let Some(length) = content_length {
        variables.push(("CONTENT_LENGTH".into(), length.to_string().into()));
    }
    variables.extend(own.iter().map(|(name, value)| (name.into(), value.into())));
    variables
}
