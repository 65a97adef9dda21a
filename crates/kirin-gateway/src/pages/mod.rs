//! Pages of the store: how they are read, renewed, coded and sent, and the sessions that they show.

pub mod page;
pub mod page_renewal;
pub mod page_response;
pub mod page_variants;
pub mod session;
pub mod session_item;
pub mod store_key;
