//! The mirror of a route: copies of requests for another upstream, whose answers are compared with
//! those that the visitors got, and dropped.
//!
//! - `mirrored_backend` is the place of the route, around which the mirror is.
//! - `route_mirror` chooses requests and prepares their copies.
//! - `visitor_answer` observes the answer on its way to the visitor.
//! - `prepared_copy` sends a copy when the visitor's response has ended.
//! - `comparison` compares two answers, of which `body_digest` has hashed the bodies.

mod body_digest;
mod comparison;
pub mod counters;
pub mod ignored_parts;
pub mod mirrored_backend;
mod prepared_copy;
pub mod route_mirror;
pub mod settings;
mod visitor_answer;
