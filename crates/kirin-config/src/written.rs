//! A value and the place in the file where it is written.

use std::borrow::Cow;
use std::ops::{Deref, Range};

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_spanned::Spanned;

/// A value of a key. It knows where it is written, so that an error can point there.
#[derive(Clone, Debug)]
pub struct Written<T> {
    value: T,
    /// The bytes of the file. Empty for a default.
    span: Range<usize>,
}

impl<T> Written<T> {
    /// Makes the value of a key that the file does not have.
    pub fn default_value(value: T) -> Self {
        Self { value, span: 0..0 }
    }

    /// Makes a value that is written at `span`.
    pub fn new(span: Range<usize>, value: T) -> Self {
        Self { value, span }
    }

    /// Returns the bytes of the file that hold the value. The range of a default is empty.
    pub fn span(&self) -> Range<usize> {
        self.span.clone()
    }

    /// Returns whether the file has the key.
    pub fn is_written(&self) -> bool {
        !self.span.is_empty()
    }
}

impl<T> Deref for Written<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: Default> Default for Written<T> {
    fn default() -> Self {
        Self::default_value(T::default())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Written<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<T>::deserialize(deserializer)?;
        Ok(Self { span: spanned.span(), value: spanned.into_inner() })
    }
}

impl<T: Serialize> Serialize for Written<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.value.serialize(serializer)
    }
}

/// The reference shows the value alone.
impl<T: JsonSchema> JsonSchema for Written<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}

impl<T: PartialOrd + Ord> PartialEq for Written<T> {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl<T: Ord> Eq for Written<T> {}

impl<T: Ord> PartialOrd for Written<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// Tables have these values as keys; where a key is written makes no difference there.
impl<T: Ord> Ord for Written<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.value.cmp(&other.value)
    }
}
