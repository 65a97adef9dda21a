//! The `request_headers` of a route: fields that its places get in place of those of the client.
//!
//! Pure; made when the configuration is checked.

use std::sync::Arc;

use super::path_pattern::PathPattern;
use super::value_template::ValueTemplate;
use super::variables::{RequestValues, Variable};
use crate::request::field_changes::FieldChange;
use crate::request::given_names::{GivenNames, check_given_name};

/// The fields, ready to be set.
#[derive(Debug, Default)]
pub struct GivenFields {
    fields: Vec<(Arc<str>, ValueTemplate)>,
    names: GivenNames,
}

impl GivenFields {
    /// Adds a field of a route with this path. An empty value removes the field of the client. The
    /// error says what is allowed.
    pub fn add(&mut self, name: &str, value: &str, pattern: &PathPattern) -> Result<(), String> {
        check_given_name(name).map_err(|why| format!("request header `{name}`: {why}"))?;
        if self.fields.iter().any(|(other, _)| other.eq_ignore_ascii_case(name)) {
            return Err(format!(
                "request header `{name}` is there twice; names are the same in upper and lower case"
            ));
        }
        if value.chars().any(char::is_control) {
            return Err(format!("request header `{name}`: its value has a control character"));
        }
        let template = ValueTemplate::parse(value, pattern)
            .map_err(|why| format!("request header `{name}`: {why}"))?;
        self.fields.push((name.into(), template));
        self.names = self.fields.iter().map(|(name, _)| Arc::clone(name)).collect();
        Ok(())
    }

    /// Returns whether there are no fields.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// Returns the names of the fields.
    pub fn names(&self) -> &GivenNames {
        &self.names
    }

    /// Returns the variables of all values.
    pub fn variables(&self) -> impl Iterator<Item = &Variable> {
        self.fields.iter().flat_map(|(_, template)| template.variables())
    }

    /// Returns what changes for a request. A field without a value is removed.
    pub fn changes(&self, request: &RequestValues<'_>) -> Vec<FieldChange> {
        let change = |(name, template): &(Arc<str>, ValueTemplate)| {
            let value = template.fill_field(request);
            let values = if value.is_empty() { Vec::new() } else { vec![value] };
            FieldChange::Set(Arc::clone(name), values)
        };
        self.fields.iter().map(change).collect()
    }
}
