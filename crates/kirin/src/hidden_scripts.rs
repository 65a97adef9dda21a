//! Scripts of FastCGI servers that lie beside files: their source is nobody's to read, so that a `files:` place does not know
//! them. The route goes on to its next place, which may be the server that runs them.

use crate::config::check::{PlaceSite, RouteSite, Site};
use crate::path_rest::meant_path;
use std::path::Path;

/// What names of files end in that a place does not give.
pub struct HiddenScripts(Vec<String>);

impl HiddenScripts {
    /// Of the directory `files` in `route`: if the route ends in a FastCGI upstream, or scripts of one lie in, above or below
    /// the directory.
    pub fn of(files: &Path, route: &RouteSite, site: &Site) -> Self {
        let files = files.canonicalize().unwrap_or_else(|_| files.to_owned());
        let mut hidden = Vec::new();
        for (index, upstream) in site.upstreams.iter().enumerate() {
            let Some(fastcgi) = &upstream.fastcgi else { continue };
            let root = Path::new(&fastcgi.root);
            let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
            if route.places.contains(&PlaceSite::Proxy(index))
                || files.starts_with(&root)
                || root.starts_with(&files)
            {
                hidden.push(fastcgi.extension.clone());
            }
        }
        Self(hidden)
    }

    /// Whether `path`, as it was sent, names such a file. On a file system that takes `.PHP` for `.php`, so does this.
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
