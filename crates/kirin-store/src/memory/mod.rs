//! Memory for items: pages of keys and values, slots, and how their cost is counted.

pub(crate) mod log;
pub(crate) mod page;
pub(crate) mod region;
pub(crate) mod size_class;
pub(crate) mod slab;
