//! The places that a route asks, one after the other. The first that has the answer gives it.
//!
//! Each place is one file: how it is written in `try`, how it is opened, and how it answers. A new
//! place is registered in [`registry`].

pub mod app;
pub mod cgi;
pub mod fallback;
pub mod files;
pub mod hidden_scripts;
pub mod kind;
pub mod lua;
pub mod named_files;
pub mod opening;
pub mod place;
pub mod proxy;
pub mod registry;
pub mod script_turns;
pub mod status;
pub mod store;
