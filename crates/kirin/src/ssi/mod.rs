//! Pages that are put together for each request: what `kirin-ssi` needs of this server.
//!
//! [`assembly`] carries a page out, [`source`] is where its parts come from: items of the store, the routes
//! (`subrequest.rs`), [`variables`] and [`date`]s. [`cacheability`] is what the parts say about keeping the whole.

pub mod assembly;
mod cacheability;
mod date;
mod part;
pub mod source;
mod variables;
