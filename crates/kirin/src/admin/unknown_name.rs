//! The message for an operator who names something that the configuration does not have.

/// There is nothing of a kind with a name.
#[derive(Debug, thiserror::Error)]
#[error("there is no {kind} `{name}`; there is {known}")]
pub struct UnknownName {
    kind: &'static str,
    name: String,
    known: String,
}

impl UnknownName {
    /// Returns the error. `known` are the names that there are.
    pub fn new(
        kind: &'static str,
        name: &str,
        known: impl Iterator<Item = impl Into<String>>,
    ) -> Self {
        let known: Vec<String> = known.map(Into::into).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        Self { kind, name: name.to_owned(), known }
    }
}
