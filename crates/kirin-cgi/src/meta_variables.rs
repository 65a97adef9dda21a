//! The values that Kirin adds to a request for an application. RFC 3875 section 4.1 calls them
//! meta-variables.

/// The values that the router gives with each request.
#[derive(Clone, Copy, Debug, Default)]
pub struct MetaVariables<'a> {
    /// `SCRIPT_NAME`: the decoded path below which the application is mounted.
    pub script_name: &'a [u8],
    /// The percent-encoded path from which `PATH_INFO` is made. Default: the path of the request.
    pub path: Option<&'a str>,
    /// `KIRIN_SITE`: the name of the site, before which its keys and tags in the store have a `:`.
    /// Empty for requests that belong to no named site.
    pub site: &'a str,
    /// The percent-encoded path of `REQUEST_URI`. Default: the path of the request.
    pub uri_path: Option<&'a str>,
    /// `REMOTE_USER`: the name of a visitor whose password Kirin has checked.
    pub user: Option<&'a str>,
}
