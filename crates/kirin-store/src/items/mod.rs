//! Items and the shards that hold them.

pub(crate) mod item;
pub(crate) mod record;
pub(crate) mod shard;
pub(crate) mod side;
pub(crate) mod value;
