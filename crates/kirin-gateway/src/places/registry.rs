//! The registration of all places.

use super::kind::PlaceKind;
use super::{app, cgi, files, lua, proxy, status, store};

/// All kinds of places, in the order in which error messages list them.
pub static PLACE_KINDS: [&PlaceKind; 7] =
    [&store::KIND, &files::KIND, &lua::KIND, &status::KIND, &app::KIND, &proxy::KIND, &cgi::KIND];
