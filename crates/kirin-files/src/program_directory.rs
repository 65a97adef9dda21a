//! The directory of a `cgi:DIR` place: finds the program that the first segments of a path name, as
//! `ScriptAlias` of Apache does.
//!
//! A program is a regular file that somebody may execute. The rules of `files:` hold: no path leads
//! out of the directory, links out of it are followed only if the route says so, and hidden names
//! do not exist.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use kirin_http::request_path::decode_path;
use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::config::{FilesError, FollowLinks};
use crate::root::FilesRoot;

/// How long Kirin does not look whether another directory has taken the place of this one.
const VALIDITY: Duration = Duration::from_secs(1);

/// A directory of programs, on one event loop.
pub struct ProgramDirectory(FilesRoot);

/// A program that a path names.
#[derive(Debug, PartialEq, Eq)]
pub struct FoundProgram<'p> {
    /// Its file.
    pub file: PathBuf,
    /// Its name below the directory, decoded, with a `/` before each segment.
    pub name: Vec<u8>,
    /// The rest of the path, percent-encoded: empty, or with a `/` at its start.
    pub rest: &'p str,
}

/// What has a name.
enum Kind {
    Program,
    Directory,
    Nothing,
}

impl ProgramDirectory {
    /// Opens the directory.
    pub fn open(path: &Path, follow_links: FollowLinks) -> Result<Self, FilesError> {
        FilesRoot::open(path, follow_links).map(Self)
    }

    /// Returns the program that the first segments of the percent-encoded `path` name. The path
    /// must have no `.` and no `..`: they are names that begin with a dot, so nothing has them.
    pub fn find<'p>(&self, path: &'p str, now: Instant) -> Option<FoundProgram<'p>> {
        self.0.follow_replacement(now, VALIDITY);
        let (mut name, mut rest) = (Vec::new(), path);
        while let Some(below) = rest.strip_prefix('/') {
            let end = below.find('/').unwrap_or(below.len());
            let segment = decode_path(&below.as_bytes()[..end]).ok()?;
            if !is_visible_name(&segment) {
                return None;
            }
            name.push(b'/');
            name.extend_from_slice(&segment);
            rest = &below[end..];
            match self.kind(&name[1..], path) {
                Kind::Program => {
                    let file = self.0.path().join(OsStr::from_bytes(&name[1..]));
                    return Some(FoundProgram { file, name, rest });
                }
                Kind::Directory => {}
                Kind::Nothing => return None,
            }
        }
        None
    }

    fn kind(&self, name: &[u8], path: &str) -> Kind {
        let opened = self.0.open_with(name, OFlags::PATH | OFlags::CLOEXEC);
        let file = match opened {
            Ok(file) => File::from(file),
            Err(error) => {
                if matches!(error, Errno::XDEV | Errno::PERM) {
                    let (root, why) = (self.0.path().display(), self.0.why_refused(name, error));
                    tracing::warn!(%root, path, %error, "refused: {why}");
                }
                return Kind::Nothing;
            }
        };
        match file.metadata() {
            Ok(metadata) if metadata.is_dir() => Kind::Directory,
            Ok(metadata) if metadata.is_file() && is_executable(&metadata) => Kind::Program,
            _ => Kind::Nothing,
        }
    }
}

/// Returns whether somebody may execute the file.
pub fn is_executable(metadata: &std::fs::Metadata) -> bool {
    metadata.permissions().mode() & 0o111 != 0
}

/// Returns whether a decoded segment can be the name of a file that visitors may see.
fn is_visible_name(segment: &[u8]) -> bool {
    let is_no_name = |byte: &u8| *byte == b'/' || byte.is_ascii_control();
    !segment.is_empty() && !segment.starts_with(b".") && !segment.iter().any(is_no_name)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn write(path: &Path, mode: u32) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "#!/bin/sh\n").unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn found(directory: &ProgramDirectory, path: &str) -> Option<(String, String)> {
        let program = directory.find(path, Instant::now())?;
        assert!(program.file.is_file(), "{path}");
        Some((String::from_utf8(program.name).unwrap(), program.rest.to_owned()))
    }

    #[test]
    fn the_first_segments_that_name_a_program_count() {
        let outer = tempfile::tempdir().unwrap();
        let root = outer.path().join("cgi-bin");
        for name in ["a.cgi", "sub/b", "sub/c d"] {
            write(&root.join(name), 0o755);
        }
        symlink("../a.cgi", root.join("sub/inside")).unwrap();
        let directory = ProgramDirectory::open(&root, FollowLinks::Inside).unwrap();
        for (path, name, rest) in [
            ("/a.cgi", "/a.cgi", ""),
            ("/a.cgi/", "/a.cgi", "/"),
            ("/a.cgi/x/../y%2Fz", "/a.cgi", "/x/../y%2Fz"),
            ("/%61.cgi/x", "/a.cgi", "/x"),
            ("/sub/b/b", "/sub/b", "/b"),
            ("/sub/c%20d", "/sub/c d", ""),
            ("/sub/inside/x", "/sub/inside", "/x"),
        ] {
            assert_eq!(found(&directory, path), Some((name.into(), rest.into())), "{path}");
        }
    }

    #[test]
    fn nothing_else_is_a_program() {
        let outer = tempfile::tempdir().unwrap();
        let root = outer.path().join("cgi-bin");
        write(&root.join("plain.txt"), 0o644);
        write(&root.join(".hidden"), 0o755);
        write(&root.join("sub/.hidden/x"), 0o755);
        write(&root.join("sub/b"), 0o755);
        write(&outer.path().join("outside"), 0o755);
        symlink("../outside", root.join("out")).unwrap();
        symlink(outer.path().join("outside"), root.join("absolute")).unwrap();
        symlink("/proc/self/exe", root.join("magic")).unwrap();
        symlink("..", root.join("up")).unwrap();
        symlink(".", root.join("here")).unwrap();
        let directory = ProgramDirectory::open(&root, FollowLinks::Inside).unwrap();
        let deep = "/here".repeat(60) + "/sub/b";
        for path in [
            "",
            "/",
            "/none",
            "/plain.txt",
            "/plain.txt/x",
            "/.hidden",
            "/sub",
            "/sub/",
            "/sub//b",
            "/sub/.hidden/x",
            "/../outside",
            "/sub/../../outside",
            "/%2e%2e/outside",
            "/sub/%2e%2e/%2e%2e/outside",
            "/..%2Foutside",
            "/sub%2Fb",
            "/out",
            "/absolute",
            "/magic",
            "/up/outside",
            "/sub/b%00",
            "/sub/b%0a",
            "/%zz",
            "sub/b",
            &deep,
        ] {
            assert_eq!(found(&directory, path), None, "{path}");
        }
    }

    #[test]
    fn links_out_of_the_directory_are_followed_if_the_route_says_so() {
        let outer = tempfile::tempdir().unwrap();
        let root = outer.path().join("cgi-bin");
        fs::create_dir(&root).unwrap();
        write(&outer.path().join("share/x.cgi"), 0o755);
        symlink("../share/x.cgi", root.join("x.cgi")).unwrap();
        for follow_links in [FollowLinks::SameOwner, FollowLinks::All] {
            let directory = ProgramDirectory::open(&root, follow_links).unwrap();
            let program = directory.find("/x.cgi/a", Instant::now()).unwrap();
            assert_eq!((program.file, program.rest), (root.join("x.cgi"), "/a"));
        }
    }
}
