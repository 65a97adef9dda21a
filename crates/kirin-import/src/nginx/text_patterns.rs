//! Patterns of values, from regular expressions to `*text*`.

use super::expression::{Atom, sequences};

/// Patterns as `match` has them, of which one must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TextPatterns {
    /// The patterns.
    pub patterns: Vec<String>,
    /// Whether they do not match every spelling that the expression matches.
    pub is_narrower: bool,
}

impl TextPatterns {
    /// Returns the pattern for any value.
    pub fn any() -> Self {
        Self { patterns: vec!["*".into()], is_narrower: false }
    }
}

/// Returns the pattern for one text. Returns `None` if Kirin cannot have it.
pub fn exact(text: &str) -> Option<TextPatterns> {
    let is_good = !text.contains('*') && !text.chars().any(char::is_control);
    is_good.then(|| TextPatterns { patterns: vec![text.to_owned()], is_narrower: false })
}

/// Returns the patterns for an expression. Returns `None` if there are none.
pub fn patterns(expression: &str, ignores_case: bool) -> Option<TextPatterns> {
    let ignores_case = ignores_case || expression.starts_with("(?i)");
    let mut found = TextPatterns::default();
    let mut add = |pattern: String| {
        if !found.patterns.contains(&pattern) {
            found.patterns.push(pattern);
        }
    };
    let mut has_letters = false;
    for sequence in sequences(expression)? {
        let pattern = pattern(&sequence)?;
        has_letters |= pattern.chars().any(|c| c.is_ascii_alphabetic());
        add(pattern.clone());
        if ignores_case {
            add(pattern.to_lowercase());
            add(pattern.to_uppercase());
            add(capitalized(&pattern.to_lowercase()));
        }
    }
    found.is_narrower = ignores_case && has_letters;
    Some(found)
}

fn capitalized(text: &str) -> String {
    let mut is_done = false;
    let capital = |c: char| match is_done || !c.is_ascii_alphabetic() {
        true => c,
        false => {
            is_done = true;
            c.to_ascii_uppercase()
        }
    };
    text.chars().map(capital).collect()
}

/// Returns the pattern for one sequence: a text with any text before or behind it.
fn pattern(sequence: &[Atom]) -> Option<String> {
    let (mut text, mut has_start, mut has_end) = (String::new(), false, false);
    let (mut any_before, mut any_behind) = (false, false);
    for atom in sequence {
        match atom {
            Atom::OpenGroup(..) | Atom::CloseGroup(_) => {}
            Atom::Start if text.is_empty() => has_start = true,
            Atom::End => has_end = true,
            Atom::Char(c) if !any_behind && !has_end && *c != '*' && !c.is_control() => {
                text.push(*c)
            }
            Atom::Any if text.is_empty() => any_before = true,
            Atom::Any => any_behind = true,
            // `.` and `.+` alone: any value.
            Atom::OneOf | Atom::Dot if text.is_empty() => any_before = true,
            _ => return None,
        }
    }
    let before = if has_start && !any_before { "" } else { "*" };
    let behind = if has_end && !any_behind { "" } else { "*" };
    if text.is_empty() {
        return Some(if before.is_empty() && behind.is_empty() { "" } else { "*" }.into());
    }
    Some(format!("{before}{text}{behind}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_become_patterns() {
        for (expression, ignores_case, expected) in [
            ("bot", false, Some("*bot*")),
            ("^curl", false, Some("curl*")),
            ("json$", false, Some("*json")),
            ("^(GET|HEAD|POST)$", false, Some("GET HEAD POST")),
            ("(bot|spider)", true, Some("*bot* *BOT* *Bot* *spider* *SPIDER* *Spider*")),
            (".+", false, Some("*")),
            ("", false, Some("*")),
            ("^$", false, Some("")),
            ("a.*b", false, None),
            ("[0-9]+", false, None),
        ] {
            let found = patterns(expression, ignores_case).map(|found| found.patterns.join(" "));
            assert_eq!(found.as_deref(), expected, "{expression}");
        }
    }
}
