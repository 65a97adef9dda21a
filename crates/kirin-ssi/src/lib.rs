#![forbid(unsafe_code)]
//! Server side includes: a page is compiled once and filled for each request.
//!
//! [`Template::compile`] splits a page at its directives into literals and instructions.
//! [`Rendering`] carries out the instructions and returns a list of byte pieces, without a copy.
//! This crate has no I/O and no store. A [`RenderSource`] returns the content of a key and the
//! value of a variable, and starts the requests of `include virtual`. The program calls this crate
//! for pages of the store and for responses of other places.
//!
//! The directives are those of nginx (`ngx_http_ssi_module`). Apache's spelling of them works too.
//! `<!--# include KEY -->` comes from recaro. Tags of ESI 1.0 are a second [`Syntax`] for the same
//! instructions.

mod compiler;
mod condition;
mod directive;
mod elements;
mod encoding;
mod esi;
#[cfg(test)]
mod esi_tests;
#[cfg(test)]
mod limit_tests;
mod local_target;
mod render;
mod render_source;
mod scope;
mod ssi;
mod syntax;
mod template;
#[cfg(test)]
mod test_pages;
mod text;
mod value;

pub use render::{MAX_DEPTH, RenderProblem, RenderProgress, Rendering};
pub use render_source::{FoundItem, IncludeRefusal, RenderSource, Requested, Requesting, Zone};
pub use scope::Scope;
pub use syntax::Syntax;
pub use template::{IncludeTarget, Template};

/// The text that replaces a directive that cannot be carried out, unless `config errmsg` sets
/// another. It is the text of nginx and Apache.
pub const ERROR_MESSAGE: &[u8] = b"[an error occurred while processing the directive]";
