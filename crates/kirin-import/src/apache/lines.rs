//! The lines of a configuration of Apache, and their words.

/// A line: continued lines are one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    /// The first line, counted from 1.
    pub(crate) number: usize,
    pub(crate) text: String,
}

/// Returns the lines that are neither empty nor comments.
pub(crate) fn lines(text: &str) -> Vec<Line> {
    let mut found = Vec::new();
    let mut open: Option<Line> = None;
    for (index, line) in text.strip_prefix('\u{feff}').unwrap_or(text).lines().enumerate() {
        let (part, continues) = match line.strip_suffix('\\') {
            Some(part) => (part, true),
            None => (line, false),
        };
        let mut whole = open.take().unwrap_or(Line { number: index + 1, text: String::new() });
        whole.text.push_str(part);
        if continues {
            open = Some(whole);
        } else {
            found.push(whole);
        }
    }
    found.extend(open);
    for line in &mut found {
        line.text = line.text.trim().to_owned();
    }
    found.retain(|line| !line.text.is_empty() && !line.text.starts_with('#'));
    found
}

/// Returns the words of a line. Words with spaces are in quotes.
pub(crate) fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut characters = text.chars().peekable();
    while let Some(first) = characters.next() {
        if first.is_whitespace() {
            continue;
        }
        let mut word = String::new();
        let quote = Some(first).filter(|first| matches!(first, '"' | '\''));
        if quote.is_none() {
            word.push(first);
        }
        while let Some(character) = characters.next() {
            match (quote, character) {
                (Some(quote), character) if character == quote => break,
                (Some(quote), '\\') if characters.peek() == Some(&quote) => {
                    word.extend(characters.next());
                }
                (None, character) if character.is_whitespace() => break,
                _ => word.push(character),
            }
        }
        words.push(word);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn continued_lines_are_one_and_quotes_are_words() {
        let found = lines("# a\nB c \\\n  \"d \\\" e\"\n\n f\n");
        assert_eq!(found.iter().map(|line| line.number).collect::<Vec<_>>(), [2, 5]);
        assert_eq!(words(&found[0].text), ["B", "c", "d \" e"]);
        assert_eq!(words("a 'b c' \"\" d\\e"), ["a", "b c", "", "d\\e"]);
    }
}
