//! What a rendering asks: the items, variables and requests of a page. The program has them.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use crate::scope::Scope;
use crate::template::{IncludeTarget, Template};

/// The data and requests for a page.
pub trait RenderSource {
    /// Returns the compiled content under `key`.
    fn item(&mut self, key: &[u8]) -> FoundItem;

    /// Returns the value of a variable that the page has not set itself. The name is in lower case.
    fn variable(&mut self, name: &str) -> Option<Bytes>;

    /// Returns the present time, in a format of strftime(3).
    fn date(&mut self, zone: Zone, format: &str) -> Bytes;

    /// Starts a request for an include. The caller passes its response to [`Rendering::fill`] with
    /// this `id`. If the request fails later and there is an `alternate`, the response to that is
    /// needed instead. `scope` has the variables that the page has set so far.
    fn request(&mut self, include: Requesting<'_>, scope: &Scope, id: usize) -> Requested;

    /// Reports that an include is not requested.
    fn refuse(&mut self, _name: &[u8], _why: IncludeRefusal) {}
}

/// What is under a key.
pub enum FoundItem {
    /// Compiled content.
    Template(Arc<Template>),
    /// Nothing.
    Missing,
    /// It is not known yet. The rendering stops in front of the include, with
    /// [`RenderProgress::Unknown`].
    Unknown,
}

/// The reason why an include is not requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IncludeRefusal {
    /// It is on another server.
    OtherServer,
    /// A visitor's text would choose the part.
    OtherPart,
}

impl fmt::Display for IncludeRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OtherServer => "it is another server's; what that has is included by way of a route to it",
            Self::OtherPart => {
                "what the visitor has sent would lead to another part; a variable fills one segment of a path"
            }
        })
    }
}

/// The target of an include.
#[derive(Clone, Copy, Debug)]
pub struct Requesting<'a> {
    /// The kind of name.
    pub target: IncludeTarget,
    /// The name.
    pub name: &'a [u8],
    /// The alternative name, which is requested if the first fails.
    pub alternate: Option<&'a [u8]>,
}

/// The time zone: that of `date_local` or of `date_gmt`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Zone {
    /// The server's time zone.
    Local,
    /// GMT.
    Gmt,
}

/// The result of starting a request.
pub enum Requested {
    /// The response is in memory.
    Template(Arc<Template>),
    /// The response will arrive later.
    Pending,
    /// There will be no response.
    Failed,
}
