//! The rules of a route around its places. They are made when the configuration is checked, and all
//! loops share them.

use crate::routing::access::Access;
use crate::routing::basic_auth::BasicAuth;
use crate::routing::error_page::ErrorPages;
use crate::routing::redirect::Redirect;
use crate::routing::response_fields::ResponseFields;
use crate::routing::rewrite::Rewrite;

/// The rules of a route, in the order in which a request passes them.
#[derive(Debug, Default)]
pub struct Rules {
    /// The clients that are served.
    pub access: Access,
    /// A redirect. No place is asked, and no password.
    pub redirect: Option<Redirect>,
    /// The users that may pass.
    pub basic_auth: Option<BasicAuth>,
    /// The path below which places look.
    pub rewrite: Option<Rewrite>,
    /// The pages for errors.
    pub error_pages: ErrorPages,
    /// The fields of all responses.
    pub response_fields: ResponseFields,
}

impl Rules {
    /// Returns whether there are no rules.
    pub fn is_empty(&self) -> bool {
        self.access.is_for_all()
            && self.redirect.is_none()
            && self.basic_auth.is_none()
            && self.rewrite.is_none()
            && self.error_pages.paths().next().is_none()
            && self.response_fields.is_empty()
    }
}
