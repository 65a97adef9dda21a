#![forbid(unsafe_code)]
//! Which responses of a site could be in memory, judged by what the site answers. No I/O, no clock,
//! no content.
//!
//! An answer goes through these files:
//!
//! 1. [`pieces`] makes keyed hashes of its body, and [`own_values`] looks for the visitor's own
//!    values in it. [`observation`] is what is left of it.
//! 2. [`survey`] adds it to the [`evidence`] about its target: its [`versions`] with time, what
//!    visitors got, and some bodies in pieces. All of it is bounded.
//! 3. [`judge`] makes a [`verdict`] of the evidence. [`gaps`] finds the places in which bodies
//!    differ.
//! 4. [`report`] sorts the verdicts by what memory would save, and joins pages by their pattern.
//!    `kirin advise` writes it for people.

#[cfg(test)]
mod doubling_tests;
pub mod evidence;
pub mod gaps;
pub mod judge;
mod key_part;
pub mod observation;
pub mod own_values;
mod page_gaps;
pub mod pieces;
mod reasons;
pub mod report;
pub mod survey;
#[cfg(test)]
mod test_site;
pub mod verdict;
pub mod versions;
