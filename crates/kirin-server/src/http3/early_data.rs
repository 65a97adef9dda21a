//! Requests in early data (RFC 8470): what applications learn of them, and which get none.

use kirin_h2::hpack::FieldBuffer;

/// The field by which an application learns that a request came in early data (RFC 8470 section
/// 5.1).
const FIELD: &[u8] = b"early-data";

/// Adds the field to a request in early data that has none. Returns whether the request may be
/// answered: not if its own field says something else, because an application could believe it.
pub(super) fn mark(fields: &mut FieldBuffer) -> bool {
    let said = fields.iter().filter(|field| field.name == FIELD).map(|field| field.value == b"1");
    let said = said.reduce(|all, this| all && this);
    if said.is_none() {
        fields.push(FIELD, b"1", usize::MAX, usize::MAX);
    }
    said.unwrap_or(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_the_field_once_and_with_one_value() {
        for (values, may_be_answered, expected) in [
            (&[][..], true, &["1"][..]),
            (&["1"], true, &["1"]),
            (&["0"], false, &["0"]),
            (&["1", "0"], false, &["1", "0"]),
        ] {
            let mut fields = FieldBuffer::default();
            for value in values {
                fields.push(FIELD, value.as_bytes(), 1000, 10);
            }
            fields.push(b"x", b"y", 1000, 10);
            assert_eq!(mark(&mut fields), may_be_answered, "{values:?}");
            let of_name = fields.iter().filter(|field| field.name == FIELD);
            let found: Vec<_> = of_name.map(|field| field.value.to_vec()).collect();
            assert_eq!(found, expected.iter().map(|one| one.as_bytes()).collect::<Vec<_>>());
        }
    }
}
