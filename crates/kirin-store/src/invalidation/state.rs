//! The state of an item after invalidations and the passing of time.

/// The effect of an invalidation on items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invalidation {
    /// The item is served as stale until it is replaced or expires. A plain `get` serves it too.
    /// See [`ItemRef::is_stale`](crate::ItemRef::is_stale).
    Soft,
    /// The item is not served any more.
    Hard,
}

/// The state of an item that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ItemState {
    Fresh,
    /// Softly invalidated since it was stored. The slot is not marked as stale yet.
    Stale,
    /// Invalidated; must not be served.
    Invalidated,
    Expired,
}
