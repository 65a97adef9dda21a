#![forbid(unsafe_code)]
//! Scripts in Lua that answer requests on the event loop: the place `lua:FILE` of a route.
//!
//! A [`ScriptFile`] is a script on one loop, with a LuaJIT state of its own. A call of it answers,
//! passes or fails at once, or it waits: for the body of its request, or for answers of other
//! routes. No I/O is done here but reading the script's files; the program gets what is waited for
//! and has the [`Suspended`] call go on. What a script may not take is in [`Limits`], what it sees
//! of Lua in `sandbox.rs` and `prelude.lua`.

mod allowance;
mod error;
mod fetch;
mod hook;
mod host;
mod json;
mod json_decode;
mod json_encode;
mod memory;
mod modules;
mod pattern;
mod problem;
mod request;
mod response;
mod sandbox;
mod script;
mod script_file;
mod store_library;
mod string_library;
mod text_library;

pub use allowance::Limits;
pub use error::{Fault, LuaError};
pub use fetch::{Fetch, Fetched};
pub use host::Host;
pub use request::Called;
pub use script::{Step, Supply, Suspended, Wanted};
pub use script_file::ScriptFile;

/// The label of responses by scripts.
pub const ANSWERED_BY: kirin_http::AnsweredBy = kirin_http::AnsweredBy::new("lua");
