//! How Ruby finds the adapter by itself, if it is installed as a gem.

/// Ends with 0 if the gem is there.
pub(super) const PROBE: &[&str] = &["-e", "require 'kirin/app_parent'"];

/// Starts an app parent. Behind `--` are its own arguments.
pub(super) const START: &[&str] =
    &["-e", "require 'kirin/app_parent'; exit Kirin::AppParent.main(ARGV)", "--"];
