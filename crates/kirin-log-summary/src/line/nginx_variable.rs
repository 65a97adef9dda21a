//! The variables of nginx's `log_format`.

use crate::line::draft::LineField;
use crate::line::log_time::TimeValue;
use crate::line::record::TimeUnit;
use crate::line::template_value::{TemplateValue, ValueMeaning};
use crate::line::value_shape::ValueShape;

/// Splits a text that begins with a dollar sign into the variable, with its sign and braces, its
/// name, and the rest. Returns `None` if the sign stands for itself.
pub(super) fn split(text: &str) -> Option<(&str, &str, &str)> {
    let named = text.strip_prefix('$')?;
    let is_in_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let (name, rest) = match named.strip_prefix('{') {
        Some(inside) => inside.split_once('}').filter(|(name, _)| name.chars().all(is_in_name))?,
        None => named.split_at(named.find(|c| !is_in_name(c)).unwrap_or(named.len())),
    };
    let variable = text.get(..text.len() - rest.len())?;
    (!name.is_empty()).then_some((variable, name, rest))
}

/// Returns what the value of a variable says, and its characters.
pub(super) fn value(name: &str) -> TemplateValue {
    use LineField::{Cache, Host, Method, Path, Query, Request, Size, Status, Target};
    use ValueShape::{LenientWord, List, Number, Text, Token, Word};
    let seconds = LineField::Duration(Some(TimeUnit::Seconds));
    let (used, shape) = match name {
        "time_local" => return time("%d/%b/%Y:%H:%M:%S %z"),
        "time_iso8601" => return time("%Y-%m-%dT%H:%M:%S%:z"),
        "msec" => return seconds_since_1970(),
        "request" => (Some((Request, 0)), Text),
        "request_method" => (Some((Method, 0)), Token),
        "request_uri" => (Some((Target, 0)), LenientWord),
        // nginx decodes the path, so it may have spaces.
        "uri" | "document_uri" => (Some((Path, 0)), LenientWord),
        "args" | "query_string" => (Some((Query, 0)), LenientWord),
        "is_args" => (Some((Query, 1)), Word),
        "status" => (Some((Status, 0)), Number),
        "body_bytes_sent" => (Some((Size, 0)), Number),
        "bytes_sent" => (Some((Size, 1)), Number),
        "request_time" => (Some((seconds, 0)), Number),
        "upstream_response_time" => (Some((seconds, 1)), List),
        "http_host" => (Some((Host, 0)), LenientWord),
        "host" => (Some((Host, 1)), Word),
        "server_name" => (Some((Host, 2)), Word),
        "upstream_cache_status" => (Some((Cache, 0)), Token),
        "remote_user" => (None, LenientWord),
        "connection"
        | "connection_requests"
        | "connection_time"
        | "pid"
        | "request_length"
        | "content_length"
        | "gzip_ratio"
        | "remote_port"
        | "server_port"
        | "realip_remote_port"
        | "proxy_protocol_port" => (None, Number),
        "pipe"
        | "remote_addr"
        | "realip_remote_addr"
        | "server_addr"
        | "proxy_protocol_addr"
        | "server_protocol"
        | "scheme"
        | "https"
        | "http2"
        | "http3"
        | "hostname"
        | "request_id"
        | "request_completion"
        | "nginx_version"
        | "ssl_protocol"
        | "ssl_cipher"
        | "ssl_curve"
        | "ssl_session_reused"
        | "ssl_server_name" => (None, Token),
        _ if name.starts_with("upstream_http_") || name.starts_with("upstream_cookie_") => {
            (None, Text)
        }
        _ if name.starts_with("upstream_") => (None, List),
        _ if name.starts_with("tcpinfo_") => (None, Number),
        _ => (None, Text),
    };
    TemplateValue::new(used, shape)
}

fn time(format: &str) -> TemplateValue {
    TemplateValue::of_time(TimeValue::named(format))
}

fn seconds_since_1970() -> TemplateValue {
    let meaning = ValueMeaning::Time(TimeValue::named("sec"));
    TemplateValue { meaning, shape: ValueShape::Number }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_split_from_the_text_behind_them() {
        for (text, expected) in [
            ("$status \"", Some(("$status", "status", " \""))),
            ("${status}ms", Some(("${status}", "status", "ms"))),
            ("$http_x_a-", Some(("$http_x_a", "http_x_a", "-"))),
            ("$", None),
            ("$-", None),
            ("${a", None),
            ("${}", None),
            ("${a-b}", None),
        ] {
            assert_eq!(split(text), expected, "{text}");
        }
    }
}
