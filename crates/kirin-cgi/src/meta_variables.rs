//! The values that Kirin adds to a request for an application. RFC 3875 section 4.1 calls them
//! meta-variables.

use std::sync::Arc;

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
    /// `REMOTE_USER`: the name of a visitor whom Kirin has authenticated.
    pub user: Option<User<'a>>,
    /// The names of the fields that a rule of the route has set. They reach the application even
    /// if a client must not send them.
    pub given: &'a [Arc<str>],
}

/// A visitor whom Kirin has authenticated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct User<'a> {
    /// The name.
    pub name: &'a str,
    /// `AUTH_TYPE`: `Basic` if Kirin has checked a password. `None` if another program has
    /// vouched for the visitor.
    pub auth_type: Option<&'static str>,
}

/// Returns whether `name` is one of the names of `given`.
pub fn is_given(given: &[Arc<str>], name: &str) -> bool {
    given.iter().any(|given| given.eq_ignore_ascii_case(name))
}
