//! The visitors of `make score`: they come to the memo site in closed loops, and judge every
//! answer.
//!
//! The way of a request: `reader`, `member` and `poller` decide what is asked for, `browser` sends
//! it and reads the answer (`answer`, `cookies`), `judge` says what is wrong with it (reading it
//! with `page`), and `tally` counts points and faults. `contest` is what they all share.
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
