//! The paths that are not for visitors if the directory of a project is served itself.
//!
//! Kirin hides names that start with a dot. All other files of a served directory are public.

use crate::project::Project;

/// Files and directories of projects that say too much about a machine or are no pages.
const PRIVATE: [&str; 15] = [
    "/vendor",
    "/node_modules",
    "= /composer.json",
    "= /composer.lock",
    "= /package.json",
    "= /package-lock.json",
    "= /Dockerfile",
    "= /docker-compose.yml",
    "= /compose.yaml",
    "= /compose.yml",
    "= /Procfile",
    "= /Makefile",
    "= /yarn.lock",
    "= /web.config",
    "= /error_log",
];

/// Extensions of files that somebody has left there.
const PRIVATE_EXTENSIONS: [&str; 18] = [
    "*.sql",
    "*.sqlite",
    "*.sqlite3",
    "*.db",
    "*.bak",
    "*.old",
    "*.orig",
    "*.save",
    "*~",
    "*.log",
    "*.pem",
    "*.key",
    "*.ini",
    "*.inc",
    "*.phtml",
    "*.phar",
    "*.php5",
    "*_rsa",
];

/// Returns the paths to deny, as routes write them. The configuration itself is always one.
pub(crate) fn private_paths(project: &Project) -> Vec<&'static str> {
    let is_there = |path: &&&str| match **path {
        // Templates of pages often have a `vendor` with scripts and styles for visitors.
        "/vendor" => project.is_file("vendor/autoload.php"),
        path => project.exists(path.trim_start_matches(['=', ' ', '/'])),
    };
    let mut paths = vec!["= /kirin.toml"];
    paths.extend(PRIVATE.iter().filter(is_there));
    let names = project.names(".");
    let has_name =
        |pattern: &&&str| names.iter().any(|name| name.ends_with(pattern.trim_start_matches('*')));
    paths.extend(PRIVATE_EXTENSIONS.iter().filter(has_name));
    paths
}
