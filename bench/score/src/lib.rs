//! The visitors of `make score`. They come to the memo site in closed loops, and judge every
//! answer.
//!
//! A request goes this way: `reader`, `member` and `poller` choose it. `browser` sends it and reads
//! the answer (`answer`, `cookies`). `judge` finds the faults in the answer, which it reads with
//! `page`. `tally` counts points and faults. `contest` is the state that all visitors share.
//! `bench/contest.py` starts the contestants and runs this program against each.
#![forbid(unsafe_code)]

mod answer;
mod browser;
mod contest;
mod cookies;
mod facts;
mod judge;
mod kind;
mod member;
mod page;
mod poller;
mod reader;
mod tally;

pub use contest::{Plan, run};
pub use facts::{Facts, File, SeededMemo};
pub use tally::{KindVerdict, Latency, Verdict};

#[cfg(test)]
mod tests;
