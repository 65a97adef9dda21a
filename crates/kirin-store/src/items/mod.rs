//! Items, and the shards that hold them.

pub(crate) mod item;
pub(crate) mod prepared_item;
pub(crate) mod shard;
pub(crate) mod side_data;
pub(crate) mod value;
