#![forbid(unsafe_code)]
//! Static files: the `files:DIR` place of a route, and files that applications hand back.
//!
//! Each directory has one [`Files`] on each event loop. It shares nothing with the other loops, so
//! it needs no lock. The router calls [`Files::answer`] for each request. A path that was requested
//! within the validity time is answered from the open-file cache, without a system call.
//!
//! File system calls run on the event loop, as in nginx without `aio`. A cold page cache or a slow
//! network file system delays the loop. Open, stat and read take microseconds for data that the
//! kernel has in memory. A thread pool would cost every request more than that.
//!
//! A request passes these modules in order: [`file_name`] (the file that the path means),
//! `open_file_cache`, `root`, `directory` and `lookup` (the file system), `respond` (the variant
//! and its ranges), `made_variants` (compression). docs/files.md describes the same for users.
//!
//! [`ProgramDirectory`] finds the programs of a `cgi:DIR` place, by the same rules.
//!
//! [`AppFiles`] is the same cache for files that an application has opened. The worker reports
//! their path and state.

mod app_files;
mod app_response;
mod config;
mod directory;
mod entity_tag;
mod extension_types;
mod file_cache;
pub mod file_name;
mod files;
mod found;
mod links;
mod listing;
mod lookup;
mod made_variants;
mod media_type;
mod open_file_cache;
mod program_directory;
mod read_file;
mod redirect;
mod representation;
mod respond;
mod root;
mod sendfile_roots;
mod variant_names;

pub use app_files::{AppFile, AppFiles, NotThatFile, SeenFile};
pub use app_response::ANSWERED_BY_APP;
pub use config::{CacheLimits, FilesConfig, FilesError, FollowLinks};
pub use file_cache::FileCache;
pub use files::Files;
pub use media_type::MediaTypes;
pub use program_directory::{FoundProgram, ProgramDirectory, is_executable};
pub use sendfile_roots::{NotSent, SendfileRoots};

/// The label of responses by files.
pub const ANSWERED_BY: kirin_http::AnsweredBy = kirin_http::AnsweredBy::new("files");
