//! Lines as Kirin writes them in any format of directives are read back with the same values.

use jiff::Timestamp;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use crate::line::{LineTemplate, LogRecord, TemplateError, TemplateLanguage};

/// A request as Kirin logs it.
#[derive(Clone, Debug)]
struct LoggedRequest {
    path: String,
    query: String,
    status: u16,
    bytes: u64,
    micros: u64,
    /// Bytes that the client chose.
    field: Vec<u8>,
    is_cut: bool,
}

/// 22/Nov/2026:18:40:01 UTC.
const SECOND: i64 = 1_795_372_801;

const DIRECTIVES: [&str; 43] = [
    "%h",
    "%a",
    "%{c}a",
    "%l",
    "%u",
    "%t",
    "%{%Y-%m-%d %T}t",
    "%{end:%c}t",
    "%{sec}t",
    "%{msec}t",
    "%{usec}t",
    "%{msec_frac}t",
    "%r",
    "%m",
    "%U",
    "%q",
    "%H",
    "%s",
    "%>s",
    "%b",
    "%B",
    "%D",
    "%T",
    "%{ms}T",
    "%{us}T",
    "%v",
    "%V",
    "%p",
    "%P",
    "%{User-Agent}i",
    "%{Host}i",
    "%{Location}o",
    "%{id}C",
    "%{place}k",
    "%{cache}k",
    "%{queue}k",
    "%{upstream}k",
    "%{tls}k",
    "%{request_id}k",
    "%{end}k",
    "%{reqtime}k",
    "%{uri}k",
    "%{vhost}k",
];

impl LoggedRequest {
    fn target(&self) -> String {
        format!("{}{}", self.path, self.query)
    }

    /// Writes the value of a directive as `log_format.rs` of kirin-server does.
    fn value(&self, directive: &str) -> String {
        let seconds = |micros: u64| format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000);
        match directive {
            "%h" | "%a" => "2001:db8::1".into(),
            "%{c}a" => "unix:".into(),
            "%u" => escaped(&self.field).replace(' ', "\\x20"),
            "%t" => "[22/Nov/2026:18:40:01 +0000]".into(),
            "%{%Y-%m-%d %T}t" => "2026-11-22 18:40:01".into(),
            "%{end:%c}t" => "Sun Nov 22 18:40:01 2026".into(),
            "%{sec}t" => SECOND.to_string(),
            "%{msec}t" => format!("{SECOND}012"),
            "%{usec}t" => format!("{SECOND}012345"),
            "%{msec_frac}t" => "012".into(),
            "%r" => format!("GET {} HTTP/1.1", escaped(self.target().as_bytes())),
            "%m" => "GET".into(),
            "%U" => escaped(self.path.as_bytes()),
            "%q" => escaped(self.query.as_bytes()),
            "%{uri}k" => escaped(self.target().as_bytes()),
            "%H" => "HTTP/1.1".into(),
            "%s" | "%>s" => self.status.to_string(),
            "%b" if self.bytes == 0 => "-".into(),
            "%b" | "%B" => self.bytes.to_string(),
            "%D" | "%{us}T" => self.micros.to_string(),
            "%{ms}T" => (self.micros / 1000).to_string(),
            "%T" => (self.micros / 1_000_000).to_string(),
            "%{reqtime}k" => seconds(self.micros),
            "%v" => "a.org".into(),
            "%V" | "%{vhost}k" | "%{Host}i" => "a.org:80".into(),
            "%p" | "%P" => "8080".into(),
            "%{User-Agent}i" | "%{Location}o" | "%{id}C" if !self.field.is_empty() => {
                escaped(&self.field)
            }
            "%{place}k" => "app:web".into(),
            "%{cache}k" => "HIT".into(),
            "%{queue}k" => "0.000010".into(),
            "%{upstream}k" => "10.0.0.1:80".into(),
            "%{request_id}k" => "0af7651916cd43dd8448eb211c80319c".into(),
            "%{end}k" if self.is_cut => "cut".into(),
            "%{end}k" => "whole".into(),
            _ => "-".into(),
        }
    }

    /// Checks what was read from a line with these directives.
    fn check(&self, directives: &[&str], record: &LogRecord<'_>) -> Result<(), TestCaseError> {
        let has = |names: &[&str]| names.iter().any(|name| directives.contains(name));
        let method: &[u8] = if has(&["%r", "%m"]) { b"GET" } else { b"-" };
        prop_assert_eq!(&*record.method, method);
        let is_whole = has(&["%r", "%{uri}k", "%q"]);
        let target = if is_whole { self.target() } else { self.path.clone() };
        prop_assert_eq!(String::from_utf8_lossy(&record.target), target);
        prop_assert_eq!(record.status, self.status);
        let bytes = has(&["%B"]) || (has(&["%b"]) && self.bytes > 0);
        prop_assert_eq!(record.bytes, bytes.then_some(self.bytes));
        let micros = match () {
            () if has(&["%D", "%{us}T", "%{reqtime}k"]) => Some(self.micros),
            () if has(&["%{ms}T"]) => Some(self.micros / 1000 * 1000),
            () => has(&["%T"]).then_some(self.micros / 1_000_000 * 1_000_000),
        };
        prop_assert_eq!(record.micros, micros);
        let host = match () {
            () if has(&["%{Host}i", "%{vhost}k", "%V"]) => Some(&b"a.org:80"[..]),
            () => has(&["%v"]).then_some(&b"a.org"[..]),
        };
        prop_assert_eq!(record.host.as_deref(), host);
        prop_assert_eq!(record.place.is_some(), has(&["%{place}k"]));
        prop_assert_eq!(record.cache.is_some(), has(&["%{cache}k"]));
        prop_assert_eq!(record.is_cut, has(&["%{end}k"]) && self.is_cut);
        let complete = ["%t", "%{%Y-%m-%d %T}t", "%{end:%c}t", "%{sec}t", "%{msec}t", "%{usec}t"];
        let second = record.time.as_ref().map(|time| time.moment().map(Timestamp::as_second));
        prop_assert_eq!(second, has(&complete).then_some(Some(SECOND)), "{:?}", record.time);
        Ok(())
    }
}

/// Escapes a value as Kirin does.
fn escaped(value: &[u8]) -> String {
    let escape = |byte: &u8| match byte {
        b'"' | b'\\' | 0..=0x1f | 0x7f.. => format!("\\x{byte:02X}"),
        _ => char::from(*byte).to_string(),
    };
    value.iter().map(escape).collect()
}

fn request() -> impl Strategy<Value = LoggedRequest> {
    (
        "/[!-~&&[^?#]]{0,12}",
        "(\\?[!-~&&[^#]]{1,12})?",
        100_u16..600,
        prop_oneof![Just(0), any::<u64>()],
        0_u64..1_000_000_000,
        proptest::collection::vec(prop_oneof![any::<u8>(), select(b" \"\\|-[]\t".to_vec())], 0..12),
        any::<bool>(),
    )
        .prop_map(|(path, query, status, bytes, micros, field, is_cut)| LoggedRequest {
            path,
            query,
            status,
            bytes,
            micros,
            field,
            is_cut,
        })
}

/// Returns directives in any order. Some have the status and the request.
fn directives() -> impl Strategy<Value = Vec<&'static str>> {
    let parts = (select(vec!["%s", "%>s"]), select(vec!["%r", "%U", "%{uri}k"]));
    (subsequence(DIRECTIVES.to_vec(), 0..8), parts).prop_flat_map(|(mut found, parts)| {
        found.retain(|directive| ![parts.0, parts.1].contains(directive));
        found.extend([parts.0, parts.1]);
        Just(found).prop_shuffle()
    })
}

/// Writes a format and a line of it.
fn write(
    request: &LoggedRequest,
    directives: &[&str],
    separators: &[&str],
    are_quoted: &[bool],
) -> (String, String) {
    let (mut format, mut line) = (String::new(), String::new());
    for (index, directive) in directives.iter().enumerate() {
        let quote = if are_quoted[index % are_quoted.len()] { "\"" } else { "" };
        let separator = if index == 0 { "" } else { separators[index % separators.len()] };
        format += &format!("{separator}{quote}{directive}{quote}");
        let value = request.value(directive);
        line += &format!("{separator}{quote}{value}{quote}");
    }
    (format, line)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn what_kirin_writes_in_any_format_is_read_back(
        request in request(),
        directives in directives(),
        separators in proptest::collection::vec(
            select(vec![" ", "\t", "|", " - ", ":", ", ", "] [", ".", "", " : ", "5", "+0"]), 1..6
        ),
        are_quoted in proptest::collection::vec(any::<bool>(), 1..6),
    ) {
        let (format, line) = write(&request, &directives, &separators, &are_quoted);
        match LineTemplate::parse(&format, TemplateLanguage::Kirin) {
            Ok(template) => match template.read(line.as_bytes()) {
                Ok(record) => request.check(&directives, &record)?,
                Err(error) => prop_assert!(false, "{format}\n{line}\n{error}"),
            },
            Err(error) => {
                let is_ambiguous = matches!(error, TemplateError::Ambiguous { .. });
                prop_assert!(is_ambiguous, "{format}: {error}");
            }
        }
    }

    #[test]
    fn formats_with_tabs_or_quotation_marks_are_never_ambiguous(
        request in request(),
        directives in directives(),
        is_quoted: bool,
    ) {
        let separator = if is_quoted { " " } else { "\t" };
        let (format, line) = write(&request, &directives, &[separator], &[is_quoted]);
        let template = LineTemplate::parse(&format, TemplateLanguage::Kirin);
        let template = template.unwrap_or_else(|error| panic!("{format}: {error}"));
        match template.read(line.as_bytes()) {
            Ok(record) => request.check(&directives, &record)?,
            Err(error) => prop_assert!(false, "{format}\n{line}\n{error}"),
        }
    }
}
