//! Hands the contents of a store over to the store of another process, while clients write.
//!
//! The giving side ([`giving::HandOver`]) notes which keys change ([`changed_keys`]), copies all
//! items, and then sends the present state of each key that has changed. So a key that changes a
//! thousand times is sent once. The following side ([`following::Follower`]) applies what comes.
//!
//! Items keep their sequence numbers, and an invalidation is sent with the number up to which it
//! holds. So an item that was stored after a purge survives it on both sides, in whatever order the
//! two arrive.
//!
//! At the *switch* the giving side has sent all. From then on the following side takes writes of
//! its own, and what still comes is a write like any other: it gets a new sequence number. It is
//! dropped if the following side has invalidated its key or a tag since the switch, because the
//! item was begun before that.

pub(crate) mod changed_keys;
pub(crate) mod following;
pub(crate) mod frame;
pub(crate) mod giving;
pub(crate) mod item_step;
#[cfg(test)]
mod tests;
