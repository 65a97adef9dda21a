//! What the front tells an application of a request beyond what the client sent (RFC 3875 section
//! 4.1 calls such values meta-variables).

/// Given by the router with each request.
#[derive(Clone, Copy, Debug, Default)]
pub struct MetaVariables<'a> {
    /// `SCRIPT_NAME`: the path, decoded, below which the application is mounted.
    pub script_name: &'a str,
    /// The path, percent-encoded, of which `PATH_INFO` is made. Default: the path of the request.
    pub path: Option<&'a str>,
    /// `REMOTE_USER`: who has proven to be so with a password that the front has checked.
    pub user: Option<&'a str>,
}
