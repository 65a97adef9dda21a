//! Sizes and texts, from nginx's words to values of a `kirin.toml`.

use toml::Value;

/// Returns a text as a value. `${` would be an environment variable, so it gets another `$`.
pub fn text(text: impl AsRef<str>) -> Value {
    Value::String(text.as_ref().replace("${", "$${"))
}

/// Returns texts as a value.
pub fn texts<T: AsRef<str>>(list: impl IntoIterator<Item = T>) -> Value {
    Value::Array(list.into_iter().map(text).collect())
}

/// Returns the bytes of a size such as `10m`, `8k` or `512`.
pub fn bytes(word: &str) -> Option<u64> {
    let word = word.trim();
    let (number, unit) = match word.char_indices().last()? {
        (at, 'k' | 'K') => (word.get(..at)?, 1 << 10),
        (at, 'm' | 'M') => (word.get(..at)?, 1 << 20),
        (at, 'g' | 'G') => (word.get(..at)?, 1 << 30),
        _ => (word, 1),
    };
    number.parse::<u64>().ok()?.checked_mul(unit).filter(|bytes| i64::try_from(*bytes).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::size;

    #[test]
    fn sizes_have_the_units_of_nginx() {
        for (word, expected) in [
            ("10m", Some("10MB")),
            ("8K", Some("8KB")),
            ("0", Some("0B")),
            ("m", None),
            ("é", None),
        ] {
            let found = bytes(word).map(size);
            assert_eq!(found.as_deref(), expected, "{word}");
        }
    }
}
