//! The directives of a format, as Apache's LogFormat has them, and Kirin's own.

use super::log_time::{COMMON_TIME, RequestMoment, TimeForm, TimeValue};
use super::request_value::RequestValue;
use super::response_value::ResponseValue;

/// A value of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogValue {
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
pub struct FormatPiece {
    /// The text.
    pub before: Box<[u8]>,
    /// The value.
    pub value: LogValue,
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
const OWN: [(&str, LogValue); 15] = [
    ("place", LogValue::Response(ResponseValue::Place)),
    ("answered_by", LogValue::Response(ResponseValue::AnsweredBy)),
    ("cache", LogValue::Response(ResponseValue::Cache)),
    ("queue", LogValue::Response(ResponseValue::Queue)),
    ("worker", LogValue::Response(ResponseValue::Worker)),
    ("upstream", LogValue::Response(ResponseValue::Upstream)),
    ("upstream_time", LogValue::Response(ResponseValue::UpstreamTime)),
    ("tls", LogValue::Request(RequestValue::TlsVersion)),
    ("request_id", LogValue::Response(ResponseValue::RequestId)),
    ("bytes_in", LogValue::Response(ResponseValue::BytesIn)),
    ("end", LogValue::Response(ResponseValue::End)),
    ("reqtime", LogValue::Response(ResponseValue::Seconds)),
    ("uri", LogValue::Request(RequestValue::Target)),
    ("user", LogValue::Request(RequestValue::User)),
    ("vhost", LogValue::Request(RequestValue::Host)),
];

fn own_names() -> String {
    OWN.map(|(name, _)| name).join(", ")
}

/// A format that is being parsed.
struct Parser<'a> {
    environment: &'a dyn Fn(&str) -> Option<String>,
    pieces: Vec<FormatPiece>,
    text: Vec<u8>,
    times: usize,
}

/// Parses a format. Returns its values with the texts before them, and the text at its end.
/// `environment` returns the value of an environment variable.
pub fn parse(
    format: &str,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<(Vec<FormatPiece>, Box<[u8]>), FormatError> {
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
            'h' | 'a' => LogValue::Request(RequestValue::Client),
            'u' => LogValue::Request(RequestValue::User),
            't' => self.time(RequestMoment::Begin, TimeForm::Strftime(COMMON_TIME.into())),
            'r' => LogValue::Request(RequestValue::Line),
            'm' => LogValue::Request(RequestValue::Method),
            'U' => LogValue::Request(RequestValue::Path),
            'q' => LogValue::Request(RequestValue::Query),
            'H' => LogValue::Request(RequestValue::Protocol),
            's' => LogValue::Response(ResponseValue::Status),
            'b' => LogValue::Response(ResponseValue::BytesOrDash),
            'B' => LogValue::Response(ResponseValue::Bytes),
            'D' => LogValue::Response(ResponseValue::Microseconds),
            'T' => LogValue::Response(ResponseValue::WholeSeconds),
            'v' => LogValue::Request(RequestValue::ServerName),
            'V' => LogValue::Request(RequestValue::Host),
            'p' => LogValue::Request(RequestValue::ServerPort),
            'P' => LogValue::Response(ResponseValue::Process),
            _ => {
                let length = text.len() - rest.len();
                return Err(FormatError::Unknown { directive: format!("%{}", &text[..length]) });
            }
        };
        self.push(value);
        Ok(rest)
    }

    fn push(&mut self, value: LogValue) {
        let before = std::mem::take(&mut self.text).into();
        self.pieces.push(FormatPiece { before, value });
    }

    fn time(&mut self, moment: RequestMoment, form: TimeForm) -> LogValue {
        let slot = self.times;
        self.times += 1;
        LogValue::Time(TimeValue { moment, form }, slot)
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
            'i' => LogValue::Request(RequestValue::Field(name.into())),
            'o' => LogValue::Field(name.into()),
            'C' => LogValue::Request(RequestValue::Cookie(name.into())),
            'e' => {
                let value = (self.environment)(name).unwrap_or_else(|| "-".into());
                super::escaping::Escaping::Text.write(value.as_bytes(), &mut self.text);
                return Ok(());
            }
            'a' => match name {
                "c" => LogValue::Request(RequestValue::Connection),
                _ => return wrong("allowed is %{c}a, the other end of the connection".into()),
            },
            'p' => match name {
                "canonical" | "local" => LogValue::Request(RequestValue::ServerPort),
                _ => return wrong("allowed is %{local}p, the port of the listener".into()),
            },
            'T' => LogValue::Response(match name {
                "s" => ResponseValue::WholeSeconds,
                "ms" => ResponseValue::Milliseconds,
                "us" => ResponseValue::Microseconds,
                _ => return wrong("allowed are s, ms and us".into()),
            }),
            't' => {
                let (moment, format) = match name.split_once(':') {
                    Some(("begin", format)) => (RequestMoment::Begin, format),
                    Some(("end", format)) => (RequestMoment::End, format),
                    _ => (RequestMoment::Begin, name),
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
        assert_eq!(pieces[0].value, LogValue::Request(RequestValue::Client));
        assert_eq!(pieces[1].value, LogValue::Response(ResponseValue::Status));
        assert_eq!(&*end, b" 100%");
    }

    #[test]
    fn an_unknown_directive_is_reported_with_the_allowed_ones() {
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
