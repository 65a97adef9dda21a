//! The places that a route asks.

pub mod hidden_scripts;
pub mod lua;
pub mod script_turns;
pub mod store;
