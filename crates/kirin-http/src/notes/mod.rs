//! What is noted about a request while it is answered: ids, steps, traces. And
//! warnings that may be true for every request.

pub mod request_id;
pub mod request_notes;
pub mod request_scope;
pub mod request_steps;
pub mod seldom_warnings;
pub mod trace_context;
