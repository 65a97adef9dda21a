//! A value of a template: what it says, and its characters.

use crate::line::draft::{LabelMeaning, LineField};
use crate::line::log_time::TimeValue;
use crate::line::value_shape::ValueShape;

/// A value that a directive or variable writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TemplateValue {
    pub(super) meaning: ValueMeaning,
    pub(super) shape: ValueShape,
}

/// What a value says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ValueMeaning {
    /// A part of the record.
    Labelled(LabelMeaning),
    /// The time of the request, or a part of it.
    Time(TimeValue),
    /// Nothing that is summed up.
    Unused,
}

impl TemplateValue {
    /// Returns a value that is this part of the record, with a rank, or none.
    pub(super) fn new(used: Option<(LineField, u8)>, shape: ValueShape) -> Self {
        let meaning = used.map_or(ValueMeaning::Unused, |(field, rank)| {
            ValueMeaning::Labelled(LabelMeaning { field, rank })
        });
        Self { meaning, shape }
    }

    /// Returns a value that is a time.
    pub(super) fn of_time(time: TimeValue) -> Self {
        Self { shape: ValueShape::of_time(&time), meaning: ValueMeaning::Time(time) }
    }

    /// Returns the part of the record that the value is.
    pub(super) fn field(&self) -> Option<LineField> {
        match &self.meaning {
            ValueMeaning::Labelled(meaning) => Some(meaning.field),
            _ => None,
        }
    }

    /// Appends a text and the value behind it, if both values are parts of one: a path and its
    /// query, or a time and its fraction or zone. Returns false if they are not.
    pub(super) fn join(&mut self, text: &[u8], other: &Self) -> bool {
        if let (ValueMeaning::Time(time), ValueMeaning::Time(more)) =
            (&mut self.meaning, &other.meaning)
        {
            let is_joined = time.join(text, more);
            if is_joined {
                self.shape = ValueShape::of_time(time);
            }
            return is_joined;
        }
        const JOINED: LabelMeaning = LabelMeaning { field: LineField::Target, rank: 1 };
        let is_query = other.field() == Some(LineField::Query);
        let is_path =
            self.field() == Some(LineField::Path) || self.meaning == ValueMeaning::Labelled(JOINED);
        let is_joined = is_query && is_path && matches!(text, b"" | b"?");
        if is_joined {
            self.meaning = ValueMeaning::Labelled(JOINED);
        }
        is_joined
    }
}
