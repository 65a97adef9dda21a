//! The word `stacks=LANGUAGE:NUMBER,…` of a greeting.

/// Returns the numbers in the value of the word, if it is for `language`.
pub(crate) fn numbers(value: &str, language: &str) -> Option<Vec<u64>> {
    let list = value.strip_prefix(language)?.strip_prefix(':')?;
    list.split(',').map(|number| u64::from_str_radix(number, 16).ok()).collect()
}
