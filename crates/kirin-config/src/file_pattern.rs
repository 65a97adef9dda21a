//! Finds the files that a pattern such as `sites/*.toml` matches.
//!
//! The crate `glob` is not used: it panics at a file name that is not UTF-8 if hidden files are
//! left out.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use wildmatch::WildMatch;

/// The files of a pattern.
#[derive(Debug, Default)]
pub struct MatchedFiles {
    /// The files, in the order of their names. Directories are left out.
    pub files: Vec<PathBuf>,
    /// The directories that were searched.
    pub directories: Vec<PathBuf>,
}

/// Returns whether a path can match several files.
pub fn is_pattern(path: &str) -> bool {
    path.contains(['*', '?'])
}

/// Finds the files that `pattern` matches, from `directory` on. `*` and `?` match in names, and no
/// hidden ones. A directory that cannot be read is an error, with its path.
pub fn matching_files(
    directory: &Path,
    pattern: &str,
) -> Result<MatchedFiles, (PathBuf, io::Error)> {
    let mut found = MatchedFiles { files: vec![directory.to_owned()], ..MatchedFiles::default() };
    for part in Path::new(pattern) {
        let name = part.to_string_lossy();
        if !is_pattern(&name) {
            found.files.iter_mut().for_each(|path| path.push(part));
            continue;
        }
        let mut next = Vec::new();
        for directory in std::mem::take(&mut found.files) {
            let names = match matching_names(&directory, &name) {
                Ok(names) => names,
                Err(error) if is_no_directory(&error) => continue,
                Err(error) => return Err((directory, error)),
            };
            next.extend(names.into_iter().map(|name| directory.join(name)));
            found.directories.push(directory);
        }
        found.files = next;
    }
    // A link to nothing is kept, so that reading it is an error.
    found.files.retain(|path| !path.is_dir() && path.symlink_metadata().is_ok());
    Ok(found)
}

/// Returns the names in a directory that match, in the order of their bytes.
fn matching_names(directory: &Path, pattern: &str) -> io::Result<Vec<OsString>> {
    let wanted = WildMatch::new(pattern);
    let mut names = Vec::new();
    for entry in directory.read_dir()? {
        let name = entry?.file_name();
        let text = name.to_string_lossy();
        if wanted.matches(&text) && (pattern.starts_with('.') || !text.starts_with('.')) {
            names.push(name);
        }
    }
    names.sort_unstable();
    Ok(names)
}

fn is_no_directory(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn a_pattern_matches_files_in_the_order_of_their_names() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        for name in ["sites", "sites/d.toml", "sites/.h", "apps", "apps/a", "apps/b"] {
            std::fs::create_dir(at(name)).unwrap();
        }
        for name in [
            "sites/b.toml",
            "sites/B.toml",
            "sites/a.toml",
            "sites/a.toml~",
            "sites/.x.toml",
            "sites/10.toml",
            "sites/9.toml",
            "sites/[1].toml",
            "apps/a/app.toml",
        ] {
            std::fs::write(at(name), "").unwrap();
        }
        std::fs::write(directory.path().join(OsStr::from_bytes(b"sites/z\xff.toml")), "").unwrap();
        std::os::unix::fs::symlink("nothing", at("apps/link")).unwrap();
        for (pattern, files) in [
            (
                "sites/*.toml",
                "sites/10.toml sites/9.toml sites/B.toml sites/[1].toml sites/a.toml sites/b.toml \
                 sites/z\u{fffd}.toml",
            ),
            ("sites/?.toml", "sites/9.toml sites/B.toml sites/a.toml sites/b.toml"),
            ("sites/.*.toml", "sites/.x.toml"),
            ("sites/a*", "sites/a.toml sites/a.toml~"),
            ("apps/*/app.toml", "apps/a/app.toml"),
            ("*/a*", "sites/a.toml sites/a.toml~"),
            ("apps/*", "apps/link"),
            ("./apps/../apps/l*", "./apps/../apps/link"),
            ("none/*.toml", ""),
            ("sites/a.toml/*", ""),
        ] {
            let found = matching_files(directory.path(), pattern).unwrap().files;
            let found: Vec<_> = found
                .iter()
                .map(|path| path.strip_prefix(directory.path()).unwrap().to_string_lossy())
                .collect();
            let expected: Vec<&str> = files.split_whitespace().collect();
            let plain: Vec<_> = expected.iter().map(|file| file.trim_start_matches("./")).collect();
            let found: Vec<_> = found.iter().map(|file| file.trim_start_matches("./")).collect();
            assert_eq!(found, plain, "{pattern}");
        }
        let absolute = at("sites/9.*").display().to_string();
        assert_eq!(
            matching_files(Path::new("/none"), &absolute).unwrap().files,
            [at("sites/9.toml")]
        );
    }
}
