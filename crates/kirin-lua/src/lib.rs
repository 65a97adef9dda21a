#![forbid(unsafe_code)]
//! Lua scripts that answer requests on the event loop: the place `lua:FILE` of a route.
//!
//! A [`ScriptFile`] is a script on one event loop, with its own LuaJIT state. A call of it answers,
//! passes or fails at once. Or it waits for the body of its request, for the responses of other
//! routes, or for the server behind the store. This crate does no I/O except reading the script's
//! files. The program fetches what a call waits for, and then resumes the [`Suspended`] call.
//! [`Limits`] bounds the resources of a script. `sandbox.rs` and `prelude.lua` define the part of
//! Lua that scripts see.

mod allowance;
mod counted_source;
mod error;
mod fetch;
mod host;
mod json;
mod json_decode;
mod json_encode;
mod look;
mod memory;
mod modules;
mod pattern;
mod problem;
mod quick_pattern;
mod request;
mod response;
mod sandbox;
mod script;
mod script_file;
mod store_call;
mod store_command;
mod store_library;
mod string_library;
mod text_library;

pub use allowance::Limits;
pub use error::{Fault, LuaError};
pub use fetch::{Fetch, Fetched};
pub use host::{Host, VisitorSession};
pub use request::Called;
pub use script::{AwaitedInput, CallOutcome, Supply, Suspended};
pub use script_file::ScriptFile;
pub use store_call::{StoreCall, StoreReply};

/// The label of responses by scripts.
pub const ANSWERED_BY: kirin_http::AnsweredBy = kirin_http::AnsweredBy::new("lua");
