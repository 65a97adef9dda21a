//! The registration of all places.

use super::kind::PlaceKind;
use super::{app, files, lua, proxy, store};

/// All kinds of places, in the order in which error messages list them.
pub static PLACE_KINDS: [&PlaceKind; 5] =
    [&store::KIND, &files::KIND, &lua::KIND, &app::KIND, &proxy::KIND];
