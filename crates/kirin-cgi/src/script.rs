//! Finds the script that a path means, for servers that run files: `SCRIPT_NAME`, `PATH_INFO` and
//! `SCRIPT_FILENAME`.
//!
//! The rule is that of nginx's documented `fastcgi_split_path_info ^(.+?\.php)(/.*)$`, with an
//! index file for directories. This does not look for files, because they may be on another
//! machine.

use crate::request_block::push_decoded_path;

/// A script of a FastCGI server, in the parts that CGI defines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CgiScript {
    /// `SCRIPT_NAME`: the decoded part of the path that names the script.
    pub name: String,
    /// `PATH_INFO`: the rest of the path.
    pub path_info: String,
}

impl CgiScript {
    /// Returns the script that the percent-encoded `path` means. `exists` tells whether a script
    /// with a name exists. If the script does not exist, the index of the root is used as a front
    /// controller, as web servers do that look for the file. It is also used for a path behind the
    /// name of a script, unless `takes_path_info`.
    pub fn find(
        path: &str,
        extension: &str,
        index: &str,
        takes_path_info: bool,
        exists: impl FnOnce(&str) -> bool,
    ) -> Option<Self> {
        let mut decoded = Vec::with_capacity(path.len());
        push_decoded_path(&mut decoded, path).ok()?;
        // This is the NUL that ends a variable.
        decoded.pop();
        let path = String::from_utf8(decoded).ok()?;
        let script = Self::from_path(&path, extension, index)?;
        match (takes_path_info || script.path_info.is_empty()) && exists(&script.name) {
            true => Some(script),
            false => Some(Self { name: ["/", index].concat(), path_info: path }),
        }
    }

    /// Returns the script that the decoded `path` means, which begins with `/`. `extension` is for
    /// example `.php`, and `index` is the file name for paths that name no script. Returns `None`
    /// if the path has a segment `..`, which could leave the root.
    pub fn from_path(path: &str, extension: &str, index: &str) -> Option<Self> {
        if !path.starts_with('/')
            || path.split('/').any(|segment| segment == "..")
            || path.contains('\0')
        {
            return None;
        }
        let ends = path.match_indices(extension).map(|(start, found)| start + found.len());
        let is_end = |end: &usize| matches!(path.as_bytes().get(*end), None | Some(b'/'));
        let (name, path_info) =
            match ends.into_iter().find(is_end).filter(|_| !extension.is_empty()) {
                Some(end) => (path[..end].to_owned(), path[end..].to_owned()),
                None if path.ends_with('/') => ([path, index].concat(), String::new()),
                // A path that names no script goes to the index of the root, as for a front
                // controller.
                None => (["/", index].concat(), path.to_owned()),
            };
        Some(Self { name, path_info })
    }

    /// Returns `SCRIPT_FILENAME` below `root`.
    pub fn file_name(&self, root: &str) -> String {
        [root.trim_end_matches('/'), &self.name].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_split_after_its_script() {
        for (path, name, path_info) in [
            ("/", "/index.php", ""),
            ("/blog/", "/blog/index.php", ""),
            ("/a.php", "/a.php", ""),
            ("/a.php/b/c", "/a.php", "/b/c"),
            ("/a.phpx/b.php", "/a.phpx/b.php", ""),
            ("/pretty/url", "/index.php", "/pretty/url"),
            ("/image.jpg", "/index.php", "/image.jpg"),
            // The first script counts, so that the rest of the path cannot make an uploaded file
            // run.
            ("/a.php/x.php", "/a.php", "/x.php"),
        ] {
            let script = CgiScript::from_path(path, ".php", "index.php").unwrap();
            assert_eq!(
                (script.name.as_str(), script.path_info.as_str()),
                (name, path_info),
                "{path}"
            );
        }
        let script = CgiScript::from_path("/a.php", ".php", "index.php").unwrap();
        assert_eq!(script.file_name("/srv/www/"), "/srv/www/a.php");
    }

    #[test]
    fn a_path_without_a_script_goes_to_the_front_controller() {
        let exists = |name: &str| ["/index.php", "/admin/index.php", "/a b.php"].contains(&name);
        for (path, name, path_info) in [
            ("/", "/index.php", ""),
            ("/admin/", "/admin/index.php", ""),
            ("/2024/hello/", "/index.php", "/2024/hello/"),
            ("/old.php", "/index.php", "/old.php"),
            ("/uploads/a.jpg/x.php", "/index.php", "/uploads/a.jpg/x.php"),
            ("/a%20b.php/c%25", "/a b.php", "/c%"),
        ] {
            let script = CgiScript::find(path, ".php", "index.php", true, exists).unwrap();
            assert_eq!(
                (script.name.as_str(), script.path_info.as_str()),
                (name, path_info),
                "{path}"
            );
        }
        for path in ["/%ff", "/a%00.php", "/%2e%2e/a.php"] {
            assert_eq!(CgiScript::find(path, ".php", "index.php", true, |_| true), None, "{path}");
        }
    }

    #[test]
    fn without_path_info_a_script_runs_for_its_own_path_only() {
        for (path, name, path_info) in [
            ("/a.php", "/a.php", ""),
            ("/a.php/b", "/index.php", "/a.php/b"),
            ("/a.php/", "/index.php", "/a.php/"),
            ("/a.php/b.php", "/index.php", "/a.php/b.php"),
            ("/a.php%2fb", "/index.php", "/a.php/b"),
            ("/blog/", "/blog/index.php", ""),
            ("/pretty/url", "/index.php", "/pretty/url"),
        ] {
            let script = CgiScript::find(path, ".php", "index.php", false, |_| true).unwrap();
            assert_eq!((&*script.name, &*script.path_info), (name, path_info), "{path}");
        }
    }

    #[test]
    fn no_script_lies_outside_of_the_root() {
        for path in ["/../etc/passwd.php", "/a/../../b.php", "a.php", "", "/a.php/..", "/a\0.php"] {
            assert_eq!(CgiScript::from_path(path, ".php", "index.php"), None, "{path:?}");
        }
        assert!(CgiScript::from_path("/..a.php", ".php", "index.php").is_some());
    }
}
