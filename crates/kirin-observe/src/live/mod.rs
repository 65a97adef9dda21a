//! The live table: the URLs that get requests, their durations, and the places that answer them.
//! `kirin top` and the status page show it.
//!
//! Each event loop has a table of its own ([`url_table`]), into which its observer ([`observer`])
//! adds requests. A reader ([`report`]) adds up the tables of all loops.

pub mod counts;
mod histogram;
mod method_word;
pub mod observer;
pub mod rates;
pub mod report;
pub mod route_sites;
pub mod snapshot;
pub mod table;
pub mod units;
mod url_table;
pub mod views;
