#![forbid(unsafe_code)]
//! Which responses of a site could be in memory.
pub mod evidence;
pub mod gaps;
pub mod lines;
pub mod observation;
pub mod own_values;
pub mod pattern;
pub mod pieces;
pub mod report;
pub mod survey;
pub mod text;
pub mod verdict;
pub mod versions;
