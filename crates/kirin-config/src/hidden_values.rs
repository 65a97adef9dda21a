//! Leaves the values of environment variables out of messages, because they may be secrets.
//!
//! A message shows `${NAME}` instead, as the file does. Defaults stay: the file has them.

use crate::placement::Expansions;
use crate::variables::Expansion;

/// The shortest value that is looked for in messages about other places of the configuration, in
/// bytes. A shorter one is hardly a secret, and could be part of any word.
const MIN_ELSEWHERE_BYTES: usize = 6;

/// The shortest value of the place itself that is left out of a longer word, in bytes.
const MIN_IN_WORD_BYTES: usize = 4;

/// The values of the variables of a configuration.
#[derive(Clone, Debug, Default)]
pub struct VariableValues(Vec<HiddenText>);

/// A text that messages do not show.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct HiddenText {
    /// The text, in lower case: messages may have a host in lower case.
    lower_case: String,
    /// What is shown in its place.
    shown: String,
}

impl VariableValues {
    /// Collects the values. Each variable has one value.
    pub fn new(expansions: &Expansions) -> Self {
        let variables = expansions.values().flat_map(|expansion| &expansion.variables);
        let long = variables.filter(|(_, value)| value.len() >= MIN_ELSEWHERE_BYTES);
        let mut values: Vec<_> = long.flat_map(|(name, value)| of_variable(name, value)).collect();
        values.sort_unstable();
        values.dedup();
        Self(values)
    }

    /// Returns a message without values. `own` are the strings at the place of the message.
    pub fn hide<'a>(&self, message: &str, own: impl Iterator<Item = &'a Expansion>) -> String {
        let mut hidden = self.0.clone();
        let mut names: Vec<&str> = Vec::new();
        for expansion in own.filter(|expansion| !expansion.variables.is_empty()) {
            hidden.extend(HiddenText::forms(&expansion.text, &expansion.written));
            for (name, value) in &expansion.variables {
                hidden.extend(of_variable(name, value));
                if !names.contains(&name.as_str()) {
                    names.push(name);
                }
            }
        }
        // A longer text may have a shorter one in it. The sort is stable.
        hidden.sort_by_key(|text| std::cmp::Reverse(text.lower_case.len()));
        let message = without(message, &hidden);
        match names.as_slice() {
            [] => message,
            [name] => format!("{message}; `{name}` is set in the environment"),
            names => format!("{message}; `{}` are set in the environment", names.join("`, `")),
        }
    }
}

/// Returns what is hidden of a variable.
fn of_variable(name: &str, value: &str) -> Vec<HiddenText> {
    HiddenText::forms(value, &format!("${{{name}}}"))
}

impl HiddenText {
    /// Returns `text` as it is, and as Rust quotes it.
    fn forms(text: &str, shown: &str) -> Vec<Self> {
        let quoted = format!("{text:?}");
        let quoted = quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        let mut forms: Vec<&str> = [Some(text), quoted].into_iter().flatten().collect();
        forms.dedup();
        let is_some_text = |form: &&str| !form.is_empty();
        let form = |form: &str| Self { lower_case: form.to_ascii_lowercase(), shown: shown.into() };
        forms.into_iter().filter(is_some_text).map(form).collect()
    }
}

/// Returns `message` without the texts in `hidden`, of which the longest is first.
fn without(message: &str, hidden: &[HiddenText]) -> String {
    // Only ASCII letters change, so all offsets stay.
    let lower_case = message.to_ascii_lowercase();
    let mut out = String::new();
    let mut at = 0;
    while let Some(next) = message[at..].chars().next() {
        let is_here = |text: &&HiddenText| {
            lower_case[at..].starts_with(&text.lower_case)
                && is_whole(message, at, at + text.lower_case.len())
        };
        match hidden.iter().find(is_here) {
            Some(text) => {
                out.push_str(&text.shown);
                at += text.lower_case.len();
            }
            None => {
                out.push(next);
                at += next.len_utf8();
            }
        }
    }
    out
}

/// Returns whether the text from `at` to `after` is long, or a word of its own.
fn is_whole(message: &str, at: usize, after: usize) -> bool {
    after - at >= MIN_IN_WORD_BYTES
        || !message[..at].ends_with(char::is_alphanumeric)
            && !message[after..].starts_with(char::is_alphanumeric)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::variables::expand;

    fn hidden(message: &str, own: &[&str], others: &[&str]) -> String {
        let environment = |name: &str| match name {
            "SHORT" => Some("5".into()),
            "SECRET" => Some("Se\"cret\n9".into()),
            "HOST" => Some("Example.org".into()),
            "NAME" => Some("NAME".into()),
            _ => None,
        };
        let expansion = |text: &&str| expand(text, &environment).unwrap().unwrap();
        let own: Vec<_> = own.iter().map(expansion).collect();
        let others: Expansions = others.iter().map(expansion).enumerate().collect();
        VariableValues::new(&others).hide(message, own.iter())
    }

    #[test]
    fn a_message_shows_the_variable_and_not_its_value() {
        let (set, is_set) = ("is set in the environment", "`SHORT` is set in the environment");
        for (message, own, others, shown) in [
            (
                "`a` is 5: up to 50",
                "${SHORT}",
                "",
                format!("`a` is ${{SHORT}}: up to 50; {is_set}"),
            ),
            (
                "`5x` is 5x, 5",
                "${SHORT}x",
                "",
                format!("`${{SHORT}}x` is ${{SHORT}}x, ${{SHORT}}; {is_set}"),
            ),
            ("`a` is 5", "${NONE:-5}", "", "`a` is 5".into()),
            ("`a` is 5", "", "${SHORT}", "`a` is 5".into()),
            ("no se\"cret\n9", "", "${SECRET}", "no ${SECRET}".into()),
            ("no \"Se\\\"cret\\n9\"", "", "${SECRET}", "no \"${SECRET}\"".into()),
            (
                "no http://example.org:80",
                "http://${HOST}:${NONE:-80}",
                "",
                format!("no http://${{HOST}}:${{NONE:-80}}; `HOST` {set}"),
            ),
            ("no a.example.org", "${HOST}", "", format!("no a.${{HOST}}; `HOST` {set}")),
            ("NAME name", "${NAME}", "", format!("${{NAME}} ${{NAME}}; `NAME` {set}")),
            (
                "5 Example.org",
                "${SHORT}${HOST}${SHORT}",
                "",
                "${SHORT} ${HOST}; `SHORT`, `HOST` are set in the environment".into(),
            ),
        ] {
            let list = |text: &'static str| Some(text).filter(|text| !text.is_empty());
            let own: Vec<_> = list(own).into_iter().collect();
            let others: Vec<_> = list(others).into_iter().collect();
            assert_eq!(hidden(message, &own, &others), shown);
        }
    }
}
