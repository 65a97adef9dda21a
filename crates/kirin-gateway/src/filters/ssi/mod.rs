//! Pages with directives (SSI and ESI), which are assembled for each request. `kirin-ssi` has the
//! language; this is what it needs of the server.
//!
//! [`filter`] finds pages in what files and code answer. The `store` place knows its own pages.
//! [`assembly`] carries a page out. [`source`] is where its parts come from: items of the store,
//! the routes (`subrequest.rs`), [`variables`] and [`date`]s. [`cacheability`] merges what the
//! parts say about caching the page. [`streamed`] sends a page while it is made.

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
