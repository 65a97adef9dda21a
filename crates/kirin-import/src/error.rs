//! Why a configuration cannot be imported.

use std::error::Error;
use std::fmt::{self, Display, Formatter};

use crate::report::Place;

/// Why a configuration cannot be imported: an error of its syntax, or a file that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportError {
    /// Where the error is.
    pub place: Place,
    /// What is wrong, and what is allowed.
    pub message: String,
}

impl Display for ImportError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
    }
}

impl Error for ImportError {}
