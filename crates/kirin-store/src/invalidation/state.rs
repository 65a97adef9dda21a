//! What invalidation makes of an item.

/// How an invalidated item is treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invalidation {
    /// It is served as stale ([`ItemRef::is_stale`](crate::ItemRef::is_stale)) until it is replaced
    /// or expires; a plain `get` serves it too.
    Soft,
    /// It is not served any more.
    Hard,
}

/// What can be said of an item that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ItemState {
    Fresh,
    /// Invalidated softly since it was stored, and not marked so yet.
    Stale,
    /// Invalidated for good.
    Invalidated,
    Expired,
}
