#![forbid(unsafe_code)]
//! The commands that look at Kirin from outside: they ask a running one by its admin listener, or
//! read its logs and its configuration, and print what they find.
//!
//! [`command`] has them all, as the command line reads them. `running` finds the Kirin to ask.
//! What it answers is of `kirin-observe`.

mod advise;
mod block;
pub mod colours;
pub mod command;
mod explain;
mod log_sum;
mod maintenance;
pub mod number;
mod print;
mod profile;
pub mod project;
mod purge;
mod reload;
mod running;
mod status;
mod table;
mod top;
pub mod units;
mod upgrade;
mod upstream;
mod workers;

pub use print::print;
