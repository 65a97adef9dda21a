//! The languages of applications that Kirin runs.

/// The language of an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Language {
    Perl,
    Python,
    Ruby,
}
