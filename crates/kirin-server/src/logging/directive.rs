//! The directives of a format, as Apache's LogFormat has them, and Kirin's own.

use super::log_time::{COMMON_TIME, Moment, TimeForm, TimeValue};
use super::request_value::RequestValue;
use super::response_value::ResponseValue;

/// A value of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// From the request.
    Request(RequestValue),
    /// A field of the response.
    Field(Box<str>),
    /// A time, and its number among the times of the format.
    Time(TimeValue, usize),
    /// Known at the end of the response.
    Response(ResponseValue),
    /// No value: the piece is only the text before it.
    Nothing,
}

/// A part of a format: a text, then a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The text.
    pub before: Box<[u8]>,
    /// The value.
    pub value: Value,
}

/// The reason why a text is not a format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// A directive that does not exist.
    #[error(
        "there is no `{directive}`; allowed are %%, %h, %l, %u, %t, %{{FORMAT}}t, %r, %m, %U, %q, \
         %H, %s, %b, %B, %D, %T, %{{UNIT}}T, %v, %V, %p, %a, %{{c}}a, %P, %{{NAME}}i, %{{NAME}}o, \
         %{{NAME}}e, %{{NAME}}C, and %{{NAME}}k with one of {}",
        own_names()
    )]
    Unknown {
        /// The directive.
        directive: String,
    },
    /// A directive whose name in braces is wrong.
    #[error("`{directive}`: {reason}")]
    Name {
        /// The directive.
        directive: String,
        /// The error, and the names that are allowed.
        reason: String,
    },
    /// The end of the format in a directive.
    #[error("it ends within `{directive}`; a percent sign is written `%%`")]
    Unfinished {
        /// The start of the directive.
        directive: String,
    },
    /// A character that would divide or colour lines.
    #[error("it has a control character; a tab is allowed")]
    Control,
}

/// Kirin's own names, for `%{NAME}k`.
const OWN: [(&str, Value); 15] = [
    ("place", Value::Response(ResponseValue::Place)),
    ("answered_by", Value::Response(ResponseValue::AnsweredBy)),
    ("cache", Value::Response(ResponseValue::Cache)),
    ("queue", Value::Response(ResponseValue::Queue)),
    ("worker", Value::Response(ResponseValue::Worker)),
    ("upstream", Value::Response(ResponseValue::Upstream)),
    ("upstream_time", Value::Response(ResponseValue::UpstreamTime)),
    ("tls", Value::Request(RequestValue::TlsVersion)),
    ("request_id", Value::Response(ResponseValue::RequestId)),
    ("bytes_in", Value::Response(ResponseValue::BytesIn)),
    ("end", Value::Response(ResponseValue::End)),
    ("reqtime", Value::Response(ResponseValue::Seconds)),
    ("uri", Value::Request(RequestValue::Target)),
    ("user", Value::Request(RequestValue::User)),
    ("vhost", Value::Request(RequestValue::Host)),
];

fn own_names() -> String {
    OWN.map(|(name, _)| name).join(", ")
}

/// A format that is being parsed.
struct Parser<'a> {
    environment: &'a dyn Fn(&str) -> Option<String>,
    pieces: Vec<Piece>,
    text: Vec<u8>,
    times: usize,
}

/// Parses a format. Returns its values with the texts before them, and the text at its end.
/// `environment` returns the value of an environment variable.
pub fn parse(
    format: &str,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<(Vec<Piece>, Box<[u8]>), FormatError> {
    if format.chars().any(|c| c.is_control() && c != '\t') {
        return Err(FormatError::Control);
    }
    let mut parser = Parser { environment, pieces: Vec::new(), text: Vec::new(), times: 0 };
    let mut rest = format;
    while let Some((text, directive)) = rest.split_once('%') {
        parser.text.extend_from_slice(text.as_bytes());
        rest = parser.directive(directive)?;
    }
    parser.text.extend_from_slice(rest.as_bytes());
    Ok((parser.pieces, parser.text.into()))
}

impl Parser<'_> {
    /// Reads the directive at the start of `text`, behind its `%`. Returns the text behind it.
    fn directive<'t>(&mut self, text: &'t str) -> Result<&'t str, FormatError> {
        let unfinished = || FormatError::Unfinished { directive: format!("%{text}") };
        if let Some(named) = text.strip_prefix('{') {
            let (name, rest) = named.split_once('}').ok_or_else(unfinished)?;
            let letter = rest.chars().next().ok_or_else(unfinished)?;
            self.named(name, letter)?;
            return Ok(&rest[letter.len_utf8()..]);
        }
        // `%>s` is the status after internal redirects, `%<s` before. Kirin has one status.
        let plain = text.strip_prefix(['<', '>']).unwrap_or(text);
        let letter = plain.chars().next().ok_or_else(unfinished)?;
        let rest = &plain[letter.len_utf8()..];
        let value = match letter {
            '%' => {
                self.text.push(b'%');
                return Ok(rest);
            }
            'l' => {
                self.text.push(b'-');
                return Ok(rest);
            }
            'h' | 'a' => Value::Request(RequestValue::Client),
            'u' => Value::Request(RequestValue::User),
            't' => self.time(Moment::Begin, TimeForm::Strftime(COMMON_TIME.into())),
            'r' => Value::Request(RequestValue::Line),
            'm' => Value::Request(RequestValue::Method),
            'U' => Value::Request(RequestValue::Path),
            'q' => Value::Request(RequestValue::Query),
            'H' => Value::Request(RequestValue::Protocol),
            's' => Value::Response(ResponseValue::Status),
            'b' => Value::Response(ResponseValue::BytesOrDash),
            'B' => Value::Response(ResponseValue::Bytes),
            'D' => Value::Response(ResponseValue::Microseconds),
            'T' => Value::Response(ResponseValue::WholeSeconds),
            'v' => Value::Request(RequestValue::ServerName),
            'V' => Value::Request(RequestValue::Host),
            'p' => Value::Request(RequestValue::ServerPort),
            'P' => Value::Response(ResponseValue::Process),
            _ => {
                let length = text.len() - rest.len();
                return Err(FormatError::Unknown { directive: format!("%{}", &text[..length]) });
            }
        };
        self.push(value);
        Ok(rest)
    }

    fn push(&mut self, value: Value) {
        let before = std::mem::take(&mut self.text).into();
        self.pieces.push(Piece { before, value });
    }

    fn time(&mut self, moment: Moment, form: TimeForm) -> Value {
        let slot = self.times;
        self.times += 1;
        Value::Time(TimeValue { moment, form }, slot)
    }

    /// Takes the directive `%{name}letter`.
    fn named(&mut self, name: &str, letter: char) -> Result<(), FormatError> {
        let wrong = |reason: String| {
            Err(FormatError::Name { directive: format!("%{{{name}}}{letter}"), reason })
        };
        let is_token = !name.is_empty()
            && name
                .bytes()
                .all(|byte| byte.is_ascii_graphic() && !b"\"(),/:;<=>?@[\\]{}".contains(&byte));
        let value = match letter {
            'i' | 'o' | 'C' if !is_token => {
                return wrong("it is not the name of a field or cookie".into());
            }
            'i' => Value::Request(RequestValue::Field(name.into())),
            'o' => Value::Field(name.into()),
            'C' => Value::Request(RequestValue::Cookie(name.into())),
            'e' => {
                let value = (self.environment)(name).unwrap_or_else(|| "-".into());
                super::escaping::Escaping::Text.write(value.as_bytes(), &mut self.text);
                return Ok(());
            }
            'a' => match name {
                "c" => Value::Request(RequestValue::Connection),
                _ => return wrong("allowed is %{c}a, the other end of the connection".into()),
            },
            'p' => match name {
                "canonical" | "local" => Value::Request(RequestValue::ServerPort),
                _ => return wrong("allowed is %{local}p, the port of the listener".into()),
            },
            'T' => Value::Response(match name {
                "s" => ResponseValue::WholeSeconds,
                "ms" => ResponseValue::Milliseconds,
                "us" => ResponseValue::Microseconds,
                _ => return wrong("allowed are s, ms and us".into()),
            }),
            't' => {
                let (moment, format) = match name.split_once(':') {
                    Some(("begin", format)) => (Moment::Begin, format),
                    Some(("end", format)) => (Moment::End, format),
                    _ => (Moment::Begin, name),
                };
                match TimeForm::parse(format) {
                    Ok(form) => self.time(moment, form),
                    Err(error) => return wrong(format!("not a format of strftime: {error}")),
                }
            }
            'k' => match OWN.iter().find(|(own, _)| *own == name) {
                Some((_, value)) => value.clone(),
                None => return wrong(format!("allowed are {}", own_names())),
            },
            _ => {
                return Err(FormatError::Unknown { directive: format!("%{{{name}}}{letter}") });
            }
        };
        self.push(value);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(format: &str) -> String {
        parse(format, &|_| None).unwrap_err().to_string()
    }

    #[test]
    fn a_format_becomes_texts_and_values() {
        let environment = |name: &str| (name == "HOST").then(|| "a\"b".to_owned());
        let (pieces, end) = parse("<%h> %{HOST}e %{NONE}e\t%>s 100%%", &environment).unwrap();
        let before: Vec<_> =
            pieces.iter().map(|piece| String::from_utf8_lossy(&piece.before)).collect();
        assert_eq!(before, ["<", "> a\\x22b -\t"]);
        assert_eq!(pieces[0].value, Value::Request(RequestValue::Client));
        assert_eq!(pieces[1].value, Value::Response(ResponseValue::Status));
        assert_eq!(&*end, b" 100%");
    }

    #[test]
    fn what_is_no_directive_says_which_are() {
        for (format, expected) in [
            ("%h %y", "there is no `%y`; allowed are %%, %h"),
            ("%>y", "there is no `%>y`"),
            ("%{x}y", "there is no `%{x}y`"),
            ("%é", "there is no `%é`"),
            ("%200s", "there is no `%2`"),
            ("100%", "ends within `%`"),
            ("%{User-Agent", "ends within `%{User-Agent`"),
            ("%{User-Agent}", "ends within `%{User-Agent}`"),
            ("%{plaec}k", "`%{plaec}k`: allowed are place, answered_by, cache"),
            ("%{User Agent}i", "not the name of a field"),
            ("%{}o", "not the name of a field"),
            ("%{m}T", "allowed are s, ms and us"),
            ("%{x}a", "allowed is %{c}a"),
            ("%{%!}t", "not a format of strftime"),
            ("%{end:%}t", "not a format of strftime"),
            ("a\nb", "control character"),
            ("\u{1b}[31m", "control character"),
        ] {
            let error = error(format);
            assert!(error.contains(expected), "{format}: {error}");
        }
    }
}
