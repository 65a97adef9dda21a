//! The files that a configuration includes.

/// Reads the files that a configuration includes.
pub trait Files {
    /// Returns the text of a file, or why it cannot be read.
    fn read(&self, path: &str) -> Result<String, String>;

    /// Returns the paths of the files that match a pattern with `*` and `?`, sorted. The
    /// path of a single file is a pattern, too. It is returned only if the file exists.
    fn matching(&self, pattern: &str) -> Vec<String>;
}
