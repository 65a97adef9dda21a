//! The directives of Apache's LogFormat, and Kirin's own.

use crate::line::draft::LineField;
use crate::line::log_time::TimeValue;
use crate::line::record::TimeUnit;
use crate::line::template_value::TemplateValue;
use crate::line::value_shape::ValueShape;

/// A parsed directive.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Directive<'a> {
    /// The directive with its percent sign, for messages.
    pub(super) text: &'a str,
    /// Conditions and `<` or `>`: `!200`, `400,501`, `>`.
    modifiers: &'a str,
    /// The name in braces.
    name: Option<&'a str>,
    /// The letter, or `^` and two letters.
    pub(super) letter: &'a str,
}

impl<'a> Directive<'a> {
    /// Splits a text that begins with a percent sign into the directive and the rest.
    pub(super) fn split(text: &'a str) -> Option<(Self, &'a str)> {
        let mut rest = text.strip_prefix('%')?;
        let (mut modifiers, mut name) = ("", None);
        loop {
            if let Some(named) = rest.strip_prefix('{') {
                let (inside, behind) = named.split_once('}')?;
                name = Some(inside);
                rest = behind;
                continue;
            }
            let end =
                rest.find(|c: char| !c.is_ascii_digit() && !matches!(c, '!' | ',' | '<' | '>'));
            match rest.split_at(end?) {
                ("", _) => break,
                (found, behind) => {
                    modifiers = found;
                    rest = behind;
                }
            }
        }
        let length = match rest.strip_prefix('^') {
            Some(letters) => 1 + letters.chars().take(2).map(char::len_utf8).sum::<usize>(),
            None => rest.chars().next()?.len_utf8(),
        };
        let (letter, behind) = rest.split_at(length);
        let text = text.get(..text.len() - behind.len())?;
        Some((Self { text, modifiers, name, letter }, behind))
    }

    /// Returns what the value says, and its characters.
    pub(super) fn value(&self) -> TemplateValue {
        use LineField::{Cache, End, Host, Method, Path, Place, Query, Request, Size, Target};
        use ValueShape::{LenientWord, List, Number, Text, Token, Word};
        if self.letter == "t" {
            return self.time();
        }
        let micros = LineField::Duration(Some(TimeUnit::Microseconds));
        let millis = LineField::Duration(Some(TimeUnit::Milliseconds));
        let seconds = LineField::Duration(Some(TimeUnit::Seconds));
        let (used, shape) = match (self.name, self.letter) {
            (None, "r") => (Some((Request, 0)), Text),
            (None, "m") => (Some((Method, 0)), Token),
            // Apache decodes the path, so it may have spaces.
            (None, "U") => (Some((Path, 0)), LenientWord),
            (None, "q") => (Some((Query, 0)), Word),
            (None, "s") => (Some((LineField::Status, self.rank_of_status())), Number),
            (None, "b" | "B") => (Some((Size, 0)), Number),
            (None, "O") => (Some((Size, 1)), Number),
            (None, "D") | (Some("us"), "T") => (Some((micros, 1)), Number),
            (Some("ms"), "T") => (Some((millis, 2)), Number),
            (_, "T") => (Some((seconds, 3)), Number),
            (Some(name), "i") if name.eq_ignore_ascii_case("host") => {
                (Some((Host, 0)), LenientWord)
            }
            (None, "V") => (Some((Host, 1)), Word),
            (None, "v") => (Some((Host, 2)), Word),
            (None, "u") => (None, LenientWord),
            (None, "X") => (Some((End, 1)), Word),
            (None, "h" | "H") | (_, "a" | "A") => (None, Token),
            (None, "I" | "S" | "k" | "^FB" | "^FU") | (_, "p" | "P") => (None, Number),
            (None, "l" | "L" | "R") => (None, Word),
            (Some(name), "k") => match name {
                "uri" => (Some((Target, 0)), Word),
                "reqtime" => (Some((seconds, 0)), Number),
                "vhost" => (Some((Host, 0)), Word),
                "place" => (Some((Place, 0)), Token),
                "answered_by" => (Some((Place, 1)), Token),
                "cache" => (Some((Cache, 0)), Token),
                "end" => (Some((End, 0)), Token),
                "queue" | "worker" | "bytes_in" => (None, Number),
                "upstream_time" => (None, List),
                _ => (None, Word),
            },
            _ => (None, Text),
        };
        TemplateValue::new(used, shape)
    }

    fn time(&self) -> TemplateValue {
        TemplateValue::of_time(self.name.map_or_else(TimeValue::common, TimeValue::named))
    }

    /// Returns the rank of a status. `%>s` is that of the response. `%s` and `%<s` are those before
    /// a redirect within Apache.
    fn rank_of_status(&self) -> u8 {
        match self.modifiers {
            modifiers if modifiers.contains('>') => 0,
            modifiers if modifiers.contains('<') => 2,
            _ => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directives_are_split_from_the_text_behind_them() {
        for (text, expected) in [
            ("%h %l", Some(("%h", "", None, "h", " %l"))),
            ("%>s", Some(("%>s", ">", None, "s", ""))),
            (
                "%400,501{User-agent}i\"",
                Some(("%400,501{User-agent}i", "400,501", Some("User-agent"), "i", "\"")),
            ),
            ("%!200r", Some(("%!200r", "!200", None, "r", ""))),
            ("%{X}!200,304i", Some(("%{X}!200,304i", "!200,304", Some("X"), "i", ""))),
            ("%{ms}T", Some(("%{ms}T", "", Some("ms"), "T", ""))),
            ("%{X}^ti|", Some(("%{X}^ti", "", Some("X"), "^ti", "|"))),
            ("%^FB", Some(("%^FB", "", None, "^FB", ""))),
            ("%é ", Some(("%é", "", None, "é", " "))),
            ("%", None),
            ("%200", None),
            ("%{a", None),
            ("%{a}", None),
        ] {
            let found = Directive::split(text);
            let found = found.as_ref().map(|(found, rest)| {
                (found.text, found.modifiers, found.name, found.letter, *rest)
            });
            assert_eq!(found, expected, "{text}");
        }
    }
}
