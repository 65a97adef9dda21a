//! Reads the replies of the server.

use bytes::Bytes;
use redis::Value;

use crate::encoding::{LastNumbers, Purged};
use crate::error::OriginError;

/// Returns a field of the reply to `HELLO`.
pub(crate) fn field(hello: &Value, name: &str) -> Option<String> {
    let mut fields = hello.as_map_iter()?;
    fields.find(|(key, _)| text(key) == name).map(|(_, value)| text(value))
}

/// Returns the text of a reply that is one.
pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::BulkString(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::SimpleString(text) => text.clone(),
        Value::VerbatimString { text, .. } => text.clone(),
        Value::Int(number) => number.to_string(),
        _ => String::new(),
    }
}

/// Returns the numbers in the reply to `GET {k}n`, if there are any.
pub(crate) fn numbers_of(reply: &Value) -> Option<LastNumbers> {
    match reply {
        Value::BulkString(bytes) => LastNumbers::parse(bytes),
        _ => None,
    }
}

/// Returns the rows of the reply to `HGETALL {k}p`. A row that nobody can read kills all items.
pub(crate) fn table_of(reply: &Value) -> Vec<(Bytes, Purged)> {
    let Some(rows) = reply.as_map_iter() else { return Vec::new() };
    let rows = rows.map(|(prefix, purged)| match (prefix, purged) {
        (Value::BulkString(prefix), Value::BulkString(purged)) => {
            Some((Bytes::copy_from_slice(prefix), Purged::parse(purged)?))
        }
        _ => None,
    });
    rows.collect::<Option<_>>().unwrap_or_default()
}

/// Returns the time of a reply to `TIME`: seconds and microseconds.
pub(crate) fn micros_of(reply: &Value) -> Option<u64> {
    let Value::Array(parts) = reply else { return None };
    let [seconds, micros] = parts.as_slice() else { return None };
    let seconds: u64 = text(seconds).parse().ok()?;
    seconds.checked_mul(1_000_000)?.checked_add(text(micros).parse().ok()?)
}

/// Returns the error for a reply that a command cannot have.
pub(crate) fn unexpected(command: &str, reply: &Value) -> OriginError {
    let mut shown = format!("{reply:?}");
    shown.truncate(shown.floor_char_boundary(100));
    OriginError::Unexpected(format!("{shown} to {command}"))
}

/// Returns the numbers of a script's reply.
pub(crate) fn counts<const COUNT: usize>(numbers: &[i64]) -> Result<[u64; COUNT], OriginError> {
    let converted: Option<Vec<u64>> =
        numbers.iter().map(|number| u64::try_from(*number).ok()).collect();
    converted
        .and_then(|numbers| numbers.try_into().ok())
        .ok_or_else(|| OriginError::Unexpected(format!("{numbers:?} of a script")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_server_has_two_parts() {
        let part = |text: &str| Value::BulkString(text.as_bytes().to_vec());
        let time = Value::Array(vec![part("1700000000"), part("000042")]);
        assert_eq!(micros_of(&time), Some(1_700_000_000_000_042));
        assert_eq!(micros_of(&Value::Array(vec![part("1")])), None);
        assert_eq!(micros_of(&Value::Nil), None);
    }
}
