//! Scripts of FastCGI servers that are beside files. Their source must never be served, so a
//! `files:` place passes requests for them. The next place of the route may be the server that runs
//! them.

/// File name extensions that a `files:` place must not serve.
pub struct HiddenScripts(Vec<String>);

impl HiddenScripts {
    /// Hides the extensions of all FastCGI upstreams of the site. They count for every directory:
    /// scripts include files from directories beside their root, and a second copy of an
    /// application has the passwords of the first.
    pub fn new(extensions: &[String]) -> Self {
        Self(extensions.to_vec())
    }

    /// Returns whether `path`, which is normalized, names such a file. Case does not count: a file
    /// system may serve `.PHP` for `.php`.
    pub fn hide(&self, path: &[u8]) -> bool {
        if self.0.is_empty() {
            return false;
        }
        let end = path.iter().rposition(|byte| *byte != b'/').map_or(0, |last| last + 1);
        let name = path.get(..end).unwrap_or_default();
        self.0.iter().any(|extension| {
            let end = name.len().checked_sub(extension.len()).and_then(|start| name.get(start..));
            end.is_some_and(|end| end.eq_ignore_ascii_case(extension.as_bytes()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kirin_http::RequestPath;

    #[test]
    fn scripts_are_hidden_however_their_names_are_written() {
        let hidden = HiddenScripts(vec![".php".into()]);
        let hides = |hidden: &HiddenScripts, path| match RequestPath::parse(path) {
            Ok(path) => hidden.hide(path.normalized()),
            // The router refuses it before any place is asked.
            Err(_) => true,
        };
        for path in ["/a.php", "/a.%70hp", "/b/../a.php", "/a.PHP", "/a.php/", "/x.php/.", "/%00"] {
            assert!(hides(&hidden, path), "{path}");
        }
        for path in ["/", "/a.phpx", "/a.css", "/a.php/b", "/php"] {
            assert!(!hides(&hidden, path), "{path}");
        }
        assert!(!hides(&HiddenScripts(Vec::new()), "/a.php"));
    }
}
