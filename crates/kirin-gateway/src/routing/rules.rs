//! What a route says besides where to look: made when the configuration is checked, shared by all
//! loops.

use crate::routing::basic_auth::BasicAuth;
use crate::routing::error_page::ErrorPages;
use crate::routing::redirect::Redirect;
use crate::routing::response_fields::ResponseFields;
use crate::routing::rewrite::Rewrite;

/// In the order in which a request passes them.
#[derive(Debug, Default)]
pub struct Rules {
    /// Everything is elsewhere: no place is asked, and nobody for a password.
    pub redirect: Option<Redirect>,
    /// Who may pass.
    pub basic_auth: Option<BasicAuth>,
    /// Where places look.
    pub rewrite: Option<Rewrite>,
    /// Pages for errors.
    pub error_pages: ErrorPages,
    /// Fields of all responses.
    pub response_fields: ResponseFields,
}

impl Rules {
    /// Whether there are none, so that the router need not look.
    pub fn is_empty(&self) -> bool {
        self.redirect.is_none()
            && self.basic_auth.is_none()
            && self.rewrite.is_none()
            && self.error_pages.paths().next().is_none()
            && self.response_fields.is_empty()
    }
}
