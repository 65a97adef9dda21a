//! A place that runs code, around which the mirror of its route is.

use std::rc::Rc;

use kirin_http::Answer;

use super::route_mirror::RouteMirror;
use crate::filters::backend::Backend;
use crate::request::context::Request;

/// A place whose requests are copied, if its route has a mirror.
///
/// It is behind the cache and the other filters. So the copy asks for the same as the request that
/// reached the place, and both answers are compared as they were sent.
pub struct MirroredBackend<B> {
    mirror: Option<Rc<RouteMirror>>,
    backend: B,
}

impl<B: Backend> MirroredBackend<B> {
    /// Puts the mirror of a route around `backend`.
    pub fn new(mirror: Option<&Rc<RouteMirror>>, backend: B) -> Self {
        Self { mirror: mirror.cloned(), backend }
    }
}

impl<B: Backend> Backend for MirroredBackend<B> {
    fn answer(&self, request: &Request<'_>) -> Answer {
        let answer = self.backend.answer(request);
        match &self.mirror {
            None => answer,
            Some(mirror) => mirror.around(request, answer),
        }
    }
}
