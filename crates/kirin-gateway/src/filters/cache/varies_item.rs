//! The item under the key of a target whose responses vary.

/// The item that says by which fields responses vary. Requests look it up first.
pub struct VariesItem {
    /// The key of the target.
    pub primary_key: Vec<u8>,
    /// The value: the names of the fields.
    pub value: String,
    /// The tags of the target.
    pub tags: Vec<Vec<u8>>,
}
