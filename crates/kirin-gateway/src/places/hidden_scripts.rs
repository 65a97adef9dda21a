//! Scripts of FastCGI servers that lie beside files: their source must never be served, so a
//! `files:` place does not know them. The route goes on to its next place, which may be the server
//! that runs them.

use crate::routing::path_rest::meant_path;

/// File name extensions that a `files:` place must not serve.
pub struct HiddenScripts(Vec<String>);

impl HiddenScripts {
    /// The extensions of all FastCGI upstreams of the site. They count for every directory: scripts
    /// include files from directories beside their root, and a second copy of an application has
    /// the passwords of the first.
    pub fn new(extensions: &[String]) -> Self {
        Self(extensions.to_vec())
    }

    /// Whether `path`, as it was sent, names such a file. On a file system that takes `.PHP` for
    /// `.php`, so does this.
    pub fn hide(&self, path: &str) -> bool {
        if self.0.is_empty() {
            return false;
        }
        let Ok(meant) = meant_path(path) else { return true };
        let end = meant.iter().rposition(|byte| *byte != b'/').map_or(0, |last| last + 1);
        let name = meant.get(..end).unwrap_or_default();
        self.0.iter().any(|extension| {
            let end = name.len().checked_sub(extension.len()).and_then(|start| name.get(start..));
            end.is_some_and(|end| end.eq_ignore_ascii_case(extension.as_bytes()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_hidden_however_their_names_are_written() {
        let hidden = HiddenScripts(vec![".php".into()]);
        for path in ["/a.php", "/a.%70hp", "/b/../a.php", "/a.PHP", "/a.php/", "/x.php/.", "/%00"] {
            assert!(hidden.hide(path), "{path}");
        }
        for path in ["/", "/a.phpx", "/a.css", "/a.php/b", "/php"] {
            assert!(!hidden.hide(path), "{path}");
        }
        assert!(!HiddenScripts(Vec::new()).hide("/a.php"));
    }
}
