//! The text of a format: a name, directives, variables, or a line of the configuration of nginx or
//! Apache.

use std::sync::Arc;

use crate::line::template::{LineTemplate, TemplateError, TemplateLanguage};
use crate::line::{LineFormat, TimeUnit};

/// Apache's usual `combinedio`. Its last numbers are no durations.
const COMBINED_IO: &str = "%h %l %u %t \"%r\" %>s %b \"%{Referer}i\" \"%{User-Agent}i\" %I %O";

/// Why a text is no format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormatTextError {
    /// Neither a name nor directives.
    #[error(
        "allowed are combined, common, ltsv, json, terminal, vhost_combined, combinedio, directives \
         such as '%h \"%r\" %>s %D', variables such as '\"$request\" $status $request_time', and a \
         line `log_format` of nginx or `LogFormat` of Apache"
    )]
    NoFormat,
    /// A line of nginx or Apache without a format.
    #[error("`{0}` has no format in quotation marks behind it")]
    NoQuotedText(&'static str),
    /// Directives or variables that cannot be read.
    #[error(transparent)]
    Template(#[from] TemplateError),
}

impl LineFormat {
    /// Parses what a person writes for a format, for the logs of Kirin, nginx and Apache.
    pub fn from_text(text: &str) -> Result<Self, FormatTextError> {
        // A format may begin or end with a tab.
        let (line, text) = (text.trim(), text.trim_matches([' ', '\n', '\r']));
        if let Some(format) = named(text) {
            return Ok(format);
        }
        if text == "combinedio" {
            return of_template(COMBINED_IO, TemplateLanguage::Apache);
        }
        if let Some(line) = after_word(line, "log_format") {
            let texts = quoted_texts(line, nginx_escape);
            let texts = texts.ok_or(FormatTextError::NoQuotedText("log_format"))?;
            return of_template(&texts.concat(), TemplateLanguage::Nginx);
        }
        if let Some(line) = after_word(line, "LogFormat") {
            let texts = quoted_texts(line, apache_escape);
            let format = texts.and_then(|texts| texts.into_iter().next());
            let format = format.ok_or(FormatTextError::NoQuotedText("LogFormat"))?;
            // Apache reads escapes once in its configuration, and once in the format.
            return of_template(&with_escapes(&format), TemplateLanguage::Apache);
        }
        let text = with_escapes(text);
        match (has_variables(&text), text.contains('%')) {
            (false, false) => Err(FormatTextError::NoFormat),
            (true, false) => of_template(&text, TemplateLanguage::Nginx),
            // A dollar or percent sign may be text. Each format has the status.
            (true, true) if has_status_variable(&text) => {
                of_template(&text, TemplateLanguage::Nginx)
            }
            (_, true) => of_template(&text, TemplateLanguage::Apache),
        }
    }

    /// Parses the `format` of an `access_log` in Kirin's configuration.
    pub fn of_configuration(format: &str) -> Result<Self, FormatTextError> {
        match named(format).filter(|_| format != "vhost_combined") {
            Some(named) => Ok(named),
            None if format.contains('%') => of_template(format, TemplateLanguage::Kirin),
            None => Err(FormatTextError::NoFormat),
        }
    }

    /// Returns the unit of durations and what says it, if the format does.
    pub fn duration_unit(&self) -> Option<(TimeUnit, &str)> {
        match self {
            Self::Template(template) => template.duration_unit(),
            _ => None,
        }
    }

    /// Returns whether the unit of durations is not known from the format. Then an option may say
    /// it.
    pub fn has_durations_of_any_unit(&self) -> bool {
        matches!(self, Self::Combined | Self::Ltsv | Self::Json)
    }
}

fn named(name: &str) -> Option<LineFormat> {
    match name {
        "combined" | "common" | "vhost_combined" => Some(LineFormat::Combined),
        "ltsv" => Some(LineFormat::Ltsv),
        "json" => Some(LineFormat::Json),
        "terminal" => Some(LineFormat::Terminal),
        _ => None,
    }
}

fn of_template(format: &str, language: TemplateLanguage) -> Result<LineFormat, FormatTextError> {
    Ok(LineFormat::Template(Arc::new(LineTemplate::parse(format, language)?)))
}

/// Returns the text behind a word and a space.
fn after_word<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    text.strip_prefix(word).filter(|rest| rest.starts_with(|c: char| c.is_ascii_whitespace()))
}

fn has_variables(text: &str) -> bool {
    text.match_indices('$')
        .any(|(at, _)| text[at + 1..].starts_with(|c: char| c.is_ascii_lowercase() || c == '{'))
}

fn has_status_variable(text: &str) -> bool {
    ["$status", "${status}"].iter().any(|variable| text.contains(variable))
}

/// Returns the texts in quotation marks of a line of a configuration, up to a semicolon. Text
/// outside of them is a name or an option. `escape` returns what a backslash and a character stand
/// for. A line of the file that ends with a backslash goes on in the next one.
fn quoted_texts(line: &str, escape: fn(char) -> Option<char>) -> Option<Vec<String>> {
    let (mut texts, mut open) = (Vec::new(), None::<(char, String)>);
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match (&mut open, character) {
            (None, ';') => break,
            (None, '\'' | '"') => open = Some((character, String::new())),
            (None, _) => {}
            (Some((quote, _)), _) if character == *quote => {
                texts.extend(open.take().map(|(_, text)| text));
            }
            (Some((_, text)), '\\') => match characters.next()? {
                '\n' => {}
                next => match escape(next) {
                    Some(meant) => text.push(meant),
                    None => text.extend(['\\', next]),
                },
            },
            (Some((_, text)), _) => text.push(character),
        }
    }
    (!texts.is_empty() && open.is_none()).then_some(texts)
}

fn nginx_escape(character: char) -> Option<char> {
    match character {
        '"' | '\'' | '\\' => Some(character),
        't' => Some('\t'),
        'n' => Some('\n'),
        'r' => Some('\r'),
        _ => None,
    }
}

fn apache_escape(character: char) -> Option<char> {
    matches!(character, '"' | '\'' | '\\').then_some(character)
}

/// Replaces `\t`, `\"` and `\\`, as a format has them in a configuration.
fn with_escapes(text: &str) -> String {
    let mut replaced = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        let escaped = match character {
            '\\' => characters.as_str().chars().next(),
            _ => None,
        };
        let meant = match escaped {
            Some('t') => Some('\t'),
            Some(quote @ ('"' | '\'' | '\\')) => Some(quote),
            _ => None,
        };
        if meant.is_some() {
            characters.next();
        }
        replaced.push(meant.unwrap_or(character));
    }
    replaced
}
