//! Pages that are put together for each request: what `kirin-ssi` needs of this server.
//!
//! [`filter`] finds pages in what files and applications answer; the store place knows its own.
//! [`assembly`] carries a page out, [`source`] is where its parts come from: items of the store,
//! the routes (`subrequest.rs`), [`variables`] and [`date`]s.
//! [`cacheability`] is what the parts say about keeping the whole; [`streamed`] sends a page while
//! it is made.

pub mod assembly;
pub mod cacheability;
mod date;
pub mod filter;
mod part;
pub mod source;
pub mod streamed;
mod templates;
mod unread;
mod variables;

#[cfg(test)]
pub use variables::unescaped;
