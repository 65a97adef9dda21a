//! Lines in a format of directives or variables: that of a configuration, or an argument.
//!
//! A value ends where the text behind it begins ([`ValueShape`]). One value of a format may contain
//! the text behind it, such as a request line without quotation marks. The values behind that one
//! are read from the end of the line.

use std::borrow::Cow;

use crate::line::apache_directive::Directive;
use crate::line::draft::{Draft, LabelledValue, LineField};
use crate::line::error::LineError;
use crate::line::nginx_variable;
use crate::line::record::{LogRecord, TimeUnit};
use crate::line::template_value::{TemplateValue, ValueMeaning};
use crate::line::value_shape::{TextSearch, ValueShape};

/// A compiled format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineTemplate {
    pieces: Vec<TemplatePiece>,
    end: Vec<u8>,
    /// The index of the piece whose value may contain the text behind it.
    open: Option<usize>,
}

/// The language of a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TemplateLanguage {
    /// Kirin's directives, in the configuration.
    Kirin,
    /// Apache's directives, and Kirin's.
    Apache,
    /// nginx's variables.
    Nginx,
}

/// Why lines of a format cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// It has no status, or nothing of the request.
    #[error("the format has no {0}")]
    Missing(&'static str),
    /// The end of a value cannot be found.
    #[error(
        "the end of `{value}` cannot be found, because it and `{other}` may both contain the text \
         beside them: write it between quotation marks or tabs"
    )]
    Ambiguous {
        /// The directive.
        value: String,
        /// An earlier directive whose end cannot be found either.
        other: String,
    },
    /// A percent sign without a directive.
    #[error("there is no `{0}`; a percent sign is written `%%`")]
    NoDirective(String),
    /// The format ends within a directive.
    #[error("the format ends within `{0}`; a percent sign is written `%%`")]
    Unfinished(String),
}

/// A text and the value behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct TemplatePiece {
    before: Vec<u8>,
    value: TemplateValue,
    /// How the end of the value is found, or behind the open piece its start.
    search: TextSearch,
    /// The directive, for messages.
    directive: String,
}

impl LineTemplate {
    /// Compiles a format.
    pub fn parse(format: &str, language: TemplateLanguage) -> Result<Self, TemplateError> {
        let (pieces, end) = match language {
            TemplateLanguage::Nginx => of_variables(format),
            _ => of_directives(format, language)?,
        };
        let mut template = Self { pieces: joined(pieces), end, open: None };
        template.check_parts(language)?;
        template.keep_best_time();
        template.find_ends()?;
        Ok(template)
    }

    /// Returns the unit of the durations that are counted, and the directive that says it.
    pub fn duration_unit(&self) -> Option<(TimeUnit, &str)> {
        let durations = self.pieces.iter().filter_map(|piece| match &piece.value.meaning {
            ValueMeaning::Labelled(meaning) => match meaning.field {
                LineField::Duration(Some(unit)) => Some((meaning.rank, unit, &piece.directive)),
                _ => None,
            },
            _ => None,
        });
        durations
            .min_by_key(|(rank, ..)| *rank)
            .map(|(_, unit, directive)| (unit, directive.as_str()))
    }

    /// Parses a line.
    pub(super) fn read<'a>(&self, line: &'a [u8]) -> Result<LogRecord<'a>, LineError> {
        let mut draft = Draft::new(TimeUnit::Seconds, true);
        let open = self.open.unwrap_or(self.pieces.len());
        let mut rest = line;
        for (index, piece) in self.pieces.iter().enumerate().take(open) {
            rest = rest.strip_prefix(&piece.before[..]).ok_or(LineError::OtherFormat)?;
            let end = match self.behind(index) {
                [] => Some(rest.len()),
                behind => piece.search.end(rest, behind),
            };
            let (value, behind) = rest.split_at(end.ok_or(LineError::OtherFormat)?);
            set(&mut draft, &piece.value, value)?;
            rest = behind;
        }
        rest = rest.strip_suffix(&self.end[..]).ok_or(LineError::OtherFormat)?;
        for piece in self.pieces.iter().skip(open + 1).rev() {
            let at = piece.search.start(rest, &piece.before).ok_or(LineError::OtherFormat)?;
            set(&mut draft, &piece.value, &rest[at + piece.before.len()..])?;
            rest = &rest[..at];
        }
        match self.pieces.get(open) {
            Some(piece) => {
                let value = rest.strip_prefix(&piece.before[..]).ok_or(LineError::OtherFormat)?;
                set(&mut draft, &piece.value, value)?;
            }
            None if rest.is_empty() => {}
            None => return Err(LineError::OtherFormat),
        }
        draft.finish()
    }

    /// Returns the text behind a piece.
    fn behind(&self, index: usize) -> &[u8] {
        self.pieces.get(index + 1).map_or(&self.end, |next| &next.before)
    }

    /// Refuses a format whose lines have nothing to sum up.
    fn check_parts(&self, language: TemplateLanguage) -> Result<(), TemplateError> {
        use LineField::{Path, Request, Status, Target};
        let has = |field: LineField| self.pieces.iter().any(|p| p.value.field() == Some(field));
        let is_nginx = language == TemplateLanguage::Nginx;
        if !has(Status) {
            let missing = if is_nginx { "status ($status)" } else { "status (%s)" };
            return Err(TemplateError::Missing(missing));
        }
        if ![Request, Target, Path].into_iter().any(has) {
            return Err(TemplateError::Missing(match is_nginx {
                true => "request ($request, $request_uri or $uri)",
                false => "request (%r, %U or %{uri}k)",
            }));
        }
        Ok(())
    }

    /// Leaves out all times but the one that says best when a request began.
    fn keep_best_time(&mut self) {
        let rank = |piece: &TemplatePiece| match &piece.value.meaning {
            ValueMeaning::Time(time) => time.rank(),
            _ => None,
        };
        let best = (0..self.pieces.len())
            .filter_map(|index| Some((rank(&self.pieces[index])?, index)))
            .min()
            .map(|(_, index)| index);
        for (index, piece) in self.pieces.iter_mut().enumerate() {
            if best != Some(index) && matches!(piece.value.meaning, ValueMeaning::Time(_)) {
                piece.value.meaning = ValueMeaning::Unused;
            }
        }
    }

    /// Finds out how the values are told apart.
    fn find_ends(&mut self) -> Result<(), TemplateError> {
        let last = self.pieces.len().saturating_sub(1);
        let mut open = None;
        for index in 0..self.pieces.len() {
            let piece = &self.pieces[index];
            let behind = self.behind(index);
            match piece.value.shape.end_search(&piece.before, behind) {
                Some(search) => self.pieces[index].search = search,
                None if index == last && behind.is_empty() => {}
                None => {
                    open = Some(index);
                    break;
                }
            }
        }
        let searches = match open {
            Some(open) => Some(self.start_searches(open)?),
            None => {
                let lenient = self.open_lenient_word();
                open = lenient.as_ref().map(|(index, _)| *index);
                lenient.map(|(_, searches)| searches)
            }
        };
        let (Some(open), Some(searches)) = (open, searches) else { return Ok(()) };
        self.open = Some(open);
        for (piece, search) in self.pieces.iter_mut().skip(open + 1).zip(searches) {
            piece.search = search;
        }
        Ok(())
    }

    /// Returns a word that may have spaces if another server has written it, and how the starts of
    /// the values behind it are found. All else can be read from both ends, so that spaces do no
    /// harm. A path has them more often than other words.
    fn open_lenient_word(&self) -> Option<(usize, Vec<TextSearch>)> {
        let is_lenient = |index: &usize| {
            let behind = self.behind(*index);
            let shape = &self.pieces[*index].value.shape;
            *shape == ValueShape::LenientWord
                && !behind.is_empty()
                && ValueShape::Text.may_contain(behind)
        };
        let mut indexes: Vec<_> = (0..self.pieces.len()).filter(is_lenient).collect();
        indexes.sort_by_key(|index| {
            let field = self.pieces[*index].value.field();
            !matches!(field, Some(LineField::Path | LineField::Target))
        });
        indexes.into_iter().find_map(|index| Some((index, self.start_searches(index).ok()?)))
    }

    /// Returns how the starts of the values behind the open one are found.
    fn start_searches(&self, open: usize) -> Result<Vec<TextSearch>, TemplateError> {
        (open + 1..self.pieces.len())
            .map(|index| {
                let piece = &self.pieces[index];
                let behind = self.behind(index);
                piece.value.shape.start_search(&piece.before, behind).ok_or_else(|| {
                    TemplateError::Ambiguous {
                        value: piece.directive.clone(),
                        other: self.pieces[open].directive.clone(),
                    }
                })
            })
            .collect()
    }
}

type TemplatePieces = (Vec<TemplatePiece>, Vec<u8>);

/// Splits a format of directives into pieces and the text behind them.
fn of_directives(
    format: &str,
    language: TemplateLanguage,
) -> Result<TemplatePieces, TemplateError> {
    let (mut pieces, mut text) = (Vec::new(), Vec::new());
    let mut rest = format;
    while let Some(at) = rest.find('%') {
        let (before, behind) = rest.split_at(at);
        text.extend_from_slice(before.as_bytes());
        let (directive, after) =
            Directive::split(behind).ok_or_else(|| TemplateError::Unfinished(behind.to_owned()))?;
        rest = after;
        match directive.letter {
            "%" => text.push(b'%'),
            // Kirin has no other value.
            "l" if language == TemplateLanguage::Kirin => text.push(b'-'),
            letter if letter.starts_with(|c: char| c.is_ascii_alphabetic() || c == '^') => {
                let mut value = directive.value();
                // Kirin writes no spaces there.
                let is_kirin = language == TemplateLanguage::Kirin;
                if is_kirin && value.shape == ValueShape::LenientWord {
                    value.shape = ValueShape::Word;
                }
                pieces.push(piece(std::mem::take(&mut text), value, directive.text));
            }
            _ => return Err(TemplateError::NoDirective(directive.text.to_owned())),
        }
    }
    text.extend_from_slice(rest.as_bytes());
    Ok((pieces, text))
}

/// Splits a format of variables into pieces and the text behind them.
fn of_variables(format: &str) -> TemplatePieces {
    let (mut pieces, mut text) = (Vec::new(), Vec::new());
    let mut rest = format;
    while let Some(at) = rest.find('$') {
        let (before, behind) = rest.split_at(at);
        text.extend_from_slice(before.as_bytes());
        rest = match nginx_variable::split(behind) {
            Some((variable, name, after)) => {
                let value = nginx_variable::value(name);
                pieces.push(piece(std::mem::take(&mut text), value, variable));
                after
            }
            None => {
                text.push(b'$');
                &behind[1..]
            }
        };
    }
    text.extend_from_slice(rest.as_bytes());
    (pieces, text)
}

fn piece(before: Vec<u8>, value: TemplateValue, directive: &str) -> TemplatePiece {
    TemplatePiece { before, value, search: TextSearch::Nearest, directive: directive.to_owned() }
}

/// Joins pieces that are parts of one value.
fn joined(pieces: Vec<TemplatePiece>) -> Vec<TemplatePiece> {
    let mut joined = Vec::<TemplatePiece>::new();
    for piece in pieces {
        let is_joined = joined.last_mut().is_some_and(|last| {
            let is_joined = last.value.join(&piece.before, &piece.value);
            if is_joined {
                last.directive.push_str(&String::from_utf8_lossy(&piece.before));
                last.directive.push_str(&piece.directive);
            }
            is_joined
        });
        if !is_joined {
            joined.push(piece);
        }
    }
    joined
}

/// Takes a value.
fn set<'a>(draft: &mut Draft<'a>, value: &TemplateValue, text: &'a [u8]) -> Result<(), LineError> {
    match &value.meaning {
        ValueMeaning::Labelled(key) => draft.set(*key, LabelledValue::Text(Cow::Borrowed(text))),
        ValueMeaning::Time(time) => {
            if let Some(form) = &time.form {
                draft.set_time(Cow::Borrowed(text), form.clone(), 0);
            }
            Ok(())
        }
        ValueMeaning::Unused => Ok(()),
    }
}

#[cfg(test)]
#[path = "template_tests.rs"]
mod tests;
