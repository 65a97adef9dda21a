#![forbid(unsafe_code)]
//! Configurations of other servers, written as a `kirin.toml`.
//!
//! An importer reads a text and gives an [`Import`]: the sections of the `kirin.toml`
//! ([`Section`]), and a note on each line that it has read ([`Note`]): whether it was carried over,
//! whether Kirin does it by itself, or why it was left out. This crate does no input or output: who
//! calls it gives the files that a configuration includes ([`Files`]).

pub mod apache;
pub mod caddy;
#[cfg(test)]
mod doubling_tests;
mod draft;
mod error;
mod files;
mod language;
pub mod nginx;
mod report;
mod section;
mod steps;
#[cfg(test)]
mod testing;
mod text;
mod times;
pub mod unit;
pub mod uwsgi;
pub mod vcl;

pub use error::ImportError;
pub use files::Files;
pub use report::{Import, ImportedFile, Note, Outcome, Place};
pub use section::Section;
