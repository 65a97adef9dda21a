//! Values that are about to be stored.

use std::ops::{Deref, DerefMut};

use bytes::Bytes;

use crate::memory::region::Region;

/// A value that is about to be stored.
#[derive(Clone, Debug)]
pub enum NewValue<'a> {
    /// A slice that the store copies.
    Copied(&'a [u8]),
    /// Bytes that the store copies, too. It cannot account for memory that it did not allocate.
    Owned(Bytes),
    /// A [`ValueBuffer`]. A large one is kept without copying.
    Buffer(FilledBuffer),
}

impl NewValue<'_> {
    /// Borrows the bytes.
    pub fn as_slice(&self) -> &[u8] {
        match self {
            NewValue::Copied(value) => value,
            NewValue::Owned(value) => value,
            NewValue::Buffer(value) => &value.0,
        }
    }
}

impl<'a> From<&'a [u8]> for NewValue<'a> {
    fn from(value: &'a [u8]) -> NewValue<'a> {
        NewValue::Copied(value)
    }
}

impl<'a, const N: usize> From<&'a [u8; N]> for NewValue<'a> {
    fn from(value: &'a [u8; N]) -> NewValue<'a> {
        NewValue::Copied(value)
    }
}

impl From<Vec<u8>> for NewValue<'_> {
    fn from(value: Vec<u8>) -> Self {
        NewValue::Owned(Bytes::from(value))
    }
}

impl From<Bytes> for NewValue<'_> {
    fn from(value: Bytes) -> Self {
        NewValue::Owned(value)
    }
}

impl From<ValueBuffer> for NewValue<'_> {
    fn from(buffer: ValueBuffer) -> Self {
        NewValue::Buffer(FilledBuffer(Bytes::from_owner(buffer.0)))
    }
}

/// Memory into which a connection reads a large value, so that the store keeps it without copying.
/// It has exactly the value's length and starts with zeros.
#[derive(Debug)]
pub struct ValueBuffer(Region);

impl ValueBuffer {
    /// The length from which a buffer saves a copy. A shorter value is copied anyway.
    pub const WORTHWHILE_BYTES: usize = 32 << 10;

    /// Allocates `len` zeros. Check [`Store::is_storable`](crate::Store::is_storable) first.
    pub fn zeroed(len: usize) -> ValueBuffer {
        ValueBuffer(Region::zeroed(len))
    }
}

impl Deref for ValueBuffer {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl DerefMut for ValueBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

/// A [`ValueBuffer`] that was turned into a [`NewValue`].
#[derive(Clone, Debug)]
pub struct FilledBuffer(pub(crate) Bytes);
