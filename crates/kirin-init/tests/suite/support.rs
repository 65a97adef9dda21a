//! Directories of projects, made from tables.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use kirin_init::{Found, InitError};
use tempfile::TempDir;

/// A project, and what `kirin init` makes of it.
pub struct Layout {
    pub name: &'static str,
    /// Paths and contents. A path that ends in `/` is a directory, and with contents that begin
    /// with `->` a symbolic link.
    pub files: &'static [(&'static str, &'static str)],
    /// The lines of `kirin.toml` that are neither empty nor comments, without `LISTENERS`.
    pub settings: &'static str,
    /// The text for the terminal.
    pub report: &'static str,
}

/// The listeners of most projects.
const LISTENERS: &str = "listener = [
    { address = \"127.0.0.1:8080\", access_log = { path = \"stderr\", format = \"terminal\" } },
]
";

/// Makes the files of a project in a new directory.
pub fn project(files: &[(&str, &str)]) -> TempDir {
    let directory = TempDir::new().unwrap();
    for (path, contents) in files {
        write(directory.path(), path, contents);
    }
    directory
}

/// Makes a file of a project, as `Layout` describes it.
pub fn write(directory: &Path, path: &str, contents: &str) {
    let is_directory = path.ends_with('/');
    let path = directory.join(path.trim_end_matches('/'));
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    match contents.strip_prefix("->") {
        Some(target) => symlink(target, path).unwrap(),
        None if is_directory => fs::create_dir_all(path).unwrap(),
        None => fs::write(path, contents).unwrap(),
    }
}

/// Looks at a project on a machine without php-fpm.
pub fn find(directory: &Path) -> Result<Found, InitError> {
    kirin_init::find_with_sockets(directory, Path::new("/none"))
}

/// Returns the settings of a configuration, without comments and without `LISTENERS`.
pub fn settings(config: &str) -> String {
    let mut settings = String::new();
    for line in config.lines() {
        if !line.is_empty() && !line.trim_start().starts_with('#') {
            settings.push_str(line);
            settings.push('\n');
        }
    }
    settings.strip_prefix(LISTENERS).map(String::from).unwrap_or(settings)
}

/// Checks that a project gets the expected settings and report.
pub fn check(layout: &Layout) {
    let directory = project(layout.files);
    let found = find(directory.path()).unwrap();
    let config = kirin_init::config(&found);
    assert_eq!(settings(&config), layout.settings, "{}:\n{config}", layout.name);
    assert_eq!(found.report("kirin serve"), layout.report, "{}", layout.name);
}
