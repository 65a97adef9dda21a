//! The begin of a page, for the question whether it may be stored at its end.

/// What was known of the server when a page was begun.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageBegin {
    /// The number of the last purge. A later one that names the page is a reason not to store it.
    pub number: u64,
    /// What has a greater version is newer than the page.
    pub version: u64,
}
