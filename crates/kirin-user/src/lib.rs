#![forbid(unsafe_code)]
//! The user that serves, and how root opens files that others may have touched.
//!
//! Kirin may be started as root. It then opens ports and logs as root, and becomes a user with
//! fewer rights ([`User`]). Until then it must not follow links that this user could have made
//! ([`ParentDirectory`]).

mod parent_directory;
mod user;

pub use parent_directory::ParentDirectory;
pub use user::{User, UserError, is_root, permission_hint, user_name};
