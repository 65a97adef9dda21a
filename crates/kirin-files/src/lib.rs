#![forbid(unsafe_code)]
//! Static files: the `files:DIR` place of a route, and files that applications hand back.
//!
//! One [`Files`] a directory and event loop; it shares nothing with the other loops, so it needs no
//! lock. The router asks [`Files::answer`] for each request; what was asked for within the validity
//! time is answered from the open-file cache without a system call.
//!
//! File system calls are made inline, as nginx makes them without `aio`: a cold page cache or a
//! slow network file system holds up the loop. Open, stat and read of what the kernel has in memory
//! take microseconds, and a thread pool would cost every request more than that.
//!
//! In the order in which a request passes them: [`file_name`] (what file is meant),
//! `open_file_cache`, `root` and `lookup` (the file system), `respond` (which variant, and how much
//! of it), `made_variants` (compression). docs/files.md is the same for users.
//!
//! [`AppFiles`] is the same cache for files that an application has opened; its worker tells path
//! and state.

mod app_files;
mod app_response;
mod config;
mod entity_tag;
pub mod file_name;
mod files;
mod found;
mod links;
mod listing;
mod lookup;
mod made_variants;
mod media_type;
mod open_file_cache;
mod read_file;
mod redirect;
mod representation;
mod respond;
mod root;

pub use app_files::{AppFile, AppFiles, NotThatFile, SeenFile};
pub use app_response::ANSWERED_BY_APP;
pub use config::{FilesConfig, FilesError, FollowLinks};
pub use files::Files;

/// The label of responses by files.
pub const ANSWERED_BY: kirin_http::AnsweredBy = kirin_http::AnsweredBy::new("files");
