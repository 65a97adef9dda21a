//! Replaces `${NAME}` in a value by the environment variable of this name.
//!
//! A value is expanded when the TOML is parsed already. So the text of a variable is always a part
//! of one string, whatever it contains. It is not expanded again.

use std::ffi::OsString;

/// Finds environment variables.
pub type Environment<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// A string of a configuration whose variables have been replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expansion {
    /// The string as it is written.
    pub written: String,
    /// The string with the values of its variables.
    pub text: String,
    /// The variables that are set, with their values. A default is not a secret: the file has it.
    pub variables: Vec<(String, String)>,
    /// Whether the string is one variable and nothing else.
    pub is_one_variable: bool,
}

/// Why a string cannot be expanded. The caller adds the key before the message.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum VariableError {
    /// There is no such variable, and no default.
    #[error(
        "the environment variable `{0}` is not set: set it, or write a default, such as `${{{0}:-VALUE}}`"
    )]
    NotSet(String),
    /// The variable is no text.
    #[error("the environment variable `{0}` is not UTF-8")]
    NotText(String),
    /// The end of a variable is missing.
    #[error("`${{` has no `}}`: {FORM}")]
    NoEnd,
    /// There is no good name in the braces.
    #[error("`{0}` is not the name of a variable, which has letters, digits and `_`: {FORM}")]
    Name(String),
    /// A default has a variable, which is not replaced.
    #[error("the default of `{0}` has another `${{`, which is not allowed: {FORM}")]
    Nested(String),
}

/// How a variable is written.
const FORM: &str =
    "a variable is `${NAME}` or `${NAME:-DEFAULT}`, and `$${` stands for the characters `${`";

/// Returns `written` with the values of its variables. `None` if it has no `${`.
pub fn expand(
    written: &str,
    environment: Environment<'_>,
) -> Result<Option<Expansion>, VariableError> {
    if !written.contains("${") {
        return Ok(None);
    }
    let mut text = String::new();
    let mut variables = Vec::new();
    let mut count = 0;
    let mut rest = written;
    while let Some(at) = rest.find("${") {
        let (before, from) = rest.split_at(at);
        let inside = &from["${".len()..];
        if let Some(before) = before.strip_suffix('$') {
            text.push_str(before);
            text.push_str("${");
            rest = inside;
            continue;
        }
        text.push_str(before);
        let (variable, after) = inside.split_once('}').ok_or(VariableError::NoEnd)?;
        let (name, default) = match variable.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (variable, None),
        };
        if !is_name(name) {
            return Err(VariableError::Name(name.into()));
        }
        if default.is_some_and(|default| default.contains("${")) {
            return Err(VariableError::Nested(name.into()));
        }
        let set = environment(name).filter(|value| default.is_none() || !value.is_empty());
        match (set, default) {
            (Some(value), _) => {
                let value = value.into_string().map_err(|_| VariableError::NotText(name.into()))?;
                text.push_str(&value);
                variables.push((name.to_owned(), value));
            }
            (None, Some(default)) => text.push_str(default),
            (None, None) => return Err(VariableError::NotSet(name.into())),
        }
        count += 1;
        rest = after;
    }
    text.push_str(rest);
    let is_one_variable = count == 1 && written.starts_with("${") && rest.is_empty();
    Ok(Some(Expansion { written: written.into(), text, variables, is_one_variable }))
}

/// Returns `text` as a value that stands for it, because `${` is written as `$${`.
pub fn literal(text: &str) -> String {
    text.replace("${", "$${")
}

fn is_name(name: &str) -> bool {
    let is_in_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    name.bytes().all(is_in_name) && name.bytes().next().is_some_and(|byte| !byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use proptest::prelude::*;

    use super::*;

    fn environment(name: &str) -> Option<OsString> {
        match name {
            "A" => Some("one".into()),
            "_b2" => Some("${A}".into()),
            "EMPTY" => Some("".into()),
            "BYTES" => Some(OsString::from_vec(vec![0xff])),
            _ => None,
        }
    }

    fn expanded(written: &str) -> Result<String, String> {
        let expansion = expand(written, &environment).map_err(|error| error.to_string())?;
        Ok(expansion.map_or_else(|| written.to_owned(), |expansion| expansion.text))
    }

    #[test]
    fn variables_are_replaced_by_their_values_or_defaults() {
        for (written, text) in [
            ("", ""),
            ("a$b$$ {c} $A", "a$b$$ {c} $A"),
            ("${A}", "one"),
            ("x${A}y${A}", "xoneyone"),
            ("${_b2}", "${A}"),
            ("${EMPTY}", ""),
            ("${EMPTY:-two}", "two"),
            ("${NONE:-two}", "two"),
            ("${NONE:-}", ""),
            ("${A:-two}", "one"),
            ("${NONE:-a:-b {\"}", "a:-b {\""),
            ("$${A}", "${A}"),
            ("$$${A}", "$${A}"),
            ("$${", "${"),
            ("a$${A}${A}", "a${A}one"),
            ("${A}$", "one$"),
        ] {
            assert_eq!(expanded(written).as_deref(), Ok(text), "{written}");
        }
    }

    #[test]
    fn only_one_variable_and_nothing_else_can_be_a_number() {
        for (written, is_one_variable) in [
            ("${A}", true),
            ("${NONE:-5}", true),
            ("${A}${A}", false),
            ("${A} ", false),
            (" ${A}", false),
            ("$${A}", false),
        ] {
            let expansion = expand(written, &environment).unwrap().unwrap();
            assert_eq!(expansion.is_one_variable, is_one_variable, "{written}");
        }
    }

    #[test]
    fn a_variable_without_value_or_in_a_wrong_form_is_an_error() {
        let form = "a variable is `${NAME}` or `${NAME:-DEFAULT}`, and `$${` stands for the \
                    characters `${`";
        let name = |name: &str| {
            format!(
                "`{name}` is not the name of a variable, which has letters, digits and `_`: {form}"
            )
        };
        for (written, message) in [
            (
                "${NONE}",
                "the environment variable `NONE` is not set: set it, or write a default, such as \
                 `${NONE:-VALUE}`"
                    .to_owned(),
            ),
            ("x${BYTES:-a}", "the environment variable `BYTES` is not UTF-8".into()),
            ("${A", format!("`${{` has no `}}`: {form}")),
            ("${A} ${", format!("`${{` has no `}}`: {form}")),
            ("${}", name("")),
            ("${1A}", name("1A")),
            ("${A-b}", name("A-b")),
            ("${ A }", name(" A ")),
            ("${\u{e9}}", name("\u{e9}")),
            ("${:-a}", name("")),
            (
                "${A:-${NONE}}",
                format!("the default of `A` has another `${{`, which is not allowed: {form}"),
            ),
        ] {
            assert_eq!(expanded(written), Err(message), "{written}");
        }
    }

    proptest! {
        #[test]
        fn a_value_is_taken_literally(value in "(?s)[\"'\\n\\\\$\\{\\}\\[\\]#=A-Z ]{0,40}") {
            let set = |name: &str| (name == "SET").then(|| OsString::from(&value));
            let expansion = expand("<${SET}>", &set).unwrap().unwrap();
            prop_assert_eq!(expansion.text, format!("<{value}>"));
        }

        #[test]
        fn a_literal_stands_for_its_text(text in "[${}A:-]{0,12}") {
            let none = |_: &str| None;
            let expansion = expand(&literal(&text), &none).unwrap();
            prop_assert_eq!(expansion.map_or(literal(&text), |expansion| expansion.text), text);
        }
    }
}
