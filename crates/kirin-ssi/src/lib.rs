#![forbid(unsafe_code)]
//! Server side includes: a page is compiled once and filled for each request.
//!
//! [`Template::compile`] cuts a page at its directives into literals and instructions;
//! [`Rendering`] carries them out and gives a list of byte pieces, without copying any. No I/O and
//! no store in here: a [`Source`] says what a key holds and what a variable means, and starts the
//! requests that `include virtual` asks for. Called by the program, for pages of the store and for
//! answers of other places.
//!
//! The directives are nginx's (`ngx_http_ssi_module`), Apache's spelling of them works too, and
//! `<!--# include KEY -->` is recaro's. Tags of ESI 1.0 are a second [`Syntax`] for the same
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
mod scope;
mod ssi;
mod syntax;
mod template;
#[cfg(test)]
mod test_site;
mod text;
mod value;

pub use render::{
    MAX_DEPTH, NotAsked, Progress, Rendering, Requested, Requesting, Source, Trouble, Zone,
};
pub use scope::Scope;
pub use syntax::Syntax;
pub use template::{Target, Template};

/// What a page shows in the place of a directive that cannot be carried out, unless `config errmsg`
/// says otherwise; the text of nginx and Apache.
pub const ERROR_MESSAGE: &[u8] = b"[an error occurred while processing the directive]";
