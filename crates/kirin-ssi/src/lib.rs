#![forbid(unsafe_code)]
//! Server side includes: a page is compiled once and filled for each request.
//!
//! [`Template::compile`] cuts a page at its directives; [`render`] puts it together again as a list of byte pieces,
//! without copying any. No I/O and no store in here: a [`Source`] says what a key holds. Called by the program's `store`
//! place.

mod render;
mod template;

pub use render::{MAX_DEPTH, Rendered, Source, render};
pub use template::{Part, Template};
