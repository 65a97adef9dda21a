//! The place `status`: the status page of the program, to read only.
//!
//! The gateway does not know the page. The program gives it as a function.

use std::rc::Rc;
use std::sync::Arc;

use kirin_http::{Answer, RequestHead};

use super::kind::{OpenPlace, PlaceKind};
use super::opening::{Opening, PlaceError};
use super::place::Place;
use crate::request::context::Request;

/// The kind `status`.
pub static KIND: PlaceKind = PlaceKind {
    name: "status",
    argument: None,
    runs_code: false,
    answers_all: false,
    keys: &[],
    read: |_, _| Ok(Arc::new(StatusConfig)),
};

/// Answers GET and HEAD with the page, or with its JSON.
pub type StatusPage = Rc<dyn Fn(&RequestHead<'_>) -> Answer>;

/// The place in `try`.
struct StatusConfig;

impl OpenPlace for StatusConfig {
    fn open(&self, opening: &Opening<'_>) -> Result<Box<dyn Place>, PlaceError> {
        Ok(Box::new(StatusPlace(Rc::clone(&opening.resources.status_page))))
    }
}

/// The place of one route.
struct StatusPlace(StatusPage);

impl Place for StatusPlace {
    fn answer(&self, request: &Request<'_>) -> Option<Answer> {
        let head = request.head;
        head.is_get_or_head().then(|| (self.0)(head))
    }

    fn has(&self, _: &Request<'_>) -> bool {
        true
    }
}
