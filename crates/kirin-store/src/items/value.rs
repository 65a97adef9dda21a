//! Values on their way in.

use std::ops::{Deref, DerefMut};

use bytes::Bytes;

use crate::memory::region::Region;

/// A value on its way in.
#[derive(Clone, Debug)]
pub enum Value<'a> {
    /// To be copied.
    Copied(&'a [u8]),
    /// To be copied too: memory that the store did not allocate cannot be counted.
    Owned(Bytes),
    /// From a [`ValueBuffer`]: kept as it is when it is large, not copied.
    Buffer(FilledBuffer),
}

impl Value<'_> {
    pub(crate) fn as_slice(&self) -> &[u8] {
        match self {
            Value::Copied(value) => value,
            Value::Owned(value) => value,
            Value::Buffer(value) => &value.0,
        }
    }
}

impl<'a> From<&'a [u8]> for Value<'a> {
    fn from(value: &'a [u8]) -> Value<'a> {
        Value::Copied(value)
    }
}

impl<'a, const N: usize> From<&'a [u8; N]> for Value<'a> {
    fn from(value: &'a [u8; N]) -> Value<'a> {
        Value::Copied(value)
    }
}

impl From<Vec<u8>> for Value<'_> {
    fn from(value: Vec<u8>) -> Self {
        Value::Owned(Bytes::from(value))
    }
}

impl From<Bytes> for Value<'_> {
    fn from(value: Bytes) -> Self {
        Value::Owned(value)
    }
}

impl From<ValueBuffer> for Value<'_> {
    fn from(buffer: ValueBuffer) -> Self {
        Value::Buffer(FilledBuffer(Bytes::from_owner(buffer.0)))
    }
}

/// Memory to read a large value into, straight from its connection, so that the store keeps it
/// without copying: zeros of exactly the value's length, to be written over.
#[derive(Debug)]
pub struct ValueBuffer(Region);

impl ValueBuffer {
    /// From this length on it is worth it; a shorter value is copied anyway.
    pub const WORTHWHILE_BYTES: usize = 32 << 10;

    /// Zeros. Check [`Store::is_storable`](crate::Store::is_storable) first: `len` is allocated.
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

/// What a [`ValueBuffer`] became when it was made a [`Value`].
#[derive(Clone, Debug)]
pub struct FilledBuffer(pub(crate) Bytes);
