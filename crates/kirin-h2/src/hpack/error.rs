//! The reasons why a header block cannot be decoded.

/// A mistake in a header block. Each one is a connection error (RFC 9113, section 4.3), because the
/// tables of both sides no longer agree. The type is `COMPRESSION_ERROR`, except for a list that is
/// much too long.
#[derive(Debug, thiserror::Error, PartialEq, Eq, Clone, Copy)]
pub enum HpackError {
    /// An integer needs more than 32 bits, or has more octets than such an integer needs.
    #[error("an integer of the header block is too large")]
    IntegerOverflow,
    /// An index is 0, or larger than that of the oldest entry.
    #[error("an index of the header block has no entry")]
    InvalidIndex,
    /// The block ends inside a field or a size update.
    #[error("the header block ends inside a field")]
    Truncated,
    /// A Huffman string contains the end-of-string symbol, or its padding is not valid.
    #[error("a Huffman string of the header block is not valid")]
    InvalidHuffman,
    /// A size update is larger than the announced size of the table.
    #[error("a size update is larger than the announced table")]
    TableSizeTooLarge,
    /// A size update follows a field, or it is the third one of the block.
    #[error("a size update is not at the start of the header block, or there are too many")]
    MisplacedSizeUpdate,
    /// The list is so much longer than any limit that the block is an attack ("HPACK bomb").
    #[error("the header list is much too long")]
    ListTooLong,
}

/// The most bytes of a header list, whatever the limit is for those that are kept.
pub(super) const MOST_LIST_BYTES: usize = 1024 * 1024;
