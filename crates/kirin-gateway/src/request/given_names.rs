//! The names of fields that a rule of a route has set, in place of those of the client.
//!
//! Code gets such a field also if a client must not send it, such as `Remote-User`.

use std::sync::Arc;

use kirin_http::proxy_fields::is_unambiguous;

/// Fields of the connection, the framing and the codings.
const OF_CONNECTION: [&str; 11] = [
    "accept-encoding",
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Fields that Kirin writes for each request itself.
const OF_KIRIN: [&str; 6] = [
    "forwarded",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-request-id",
    "traceparent",
];

/// Checks that a rule may set the request field `name`. The error says what is allowed.
pub fn check_given_name(name: &str) -> Result<(), String> {
    if name.is_empty() || !is_unambiguous(name) {
        return Err("a name has letters, digits and `-` only".into());
    }
    match is_of_connection(name) || is_one_of(&OF_KIRIN, name) {
        true => Err("this field is Kirin's own: it cannot be set".into()),
        false => Ok(()),
    }
}

/// Returns whether a field is of the connection, the framing or the codings. Neither a rule nor a
/// script may set it.
pub fn is_of_connection(name: &str) -> bool {
    is_one_of(&OF_CONNECTION, name)
}

fn is_one_of(names: &[&str], name: &str) -> bool {
    names.iter().any(|other| other.eq_ignore_ascii_case(name))
}

/// The names of fields that rules have set. A clone is cheap.
#[derive(Clone, Debug, Default)]
pub struct GivenNames(Option<Arc<[Arc<str>]>>);

impl GivenNames {
    /// Returns the names.
    pub fn as_slice(&self) -> &[Arc<str>] {
        self.0.as_deref().unwrap_or_default()
    }

    /// Returns the names of both.
    pub fn and(&self, others: &Self) -> Self {
        match (&self.0, &others.0) {
            (None, _) => others.clone(),
            (_, None) => self.clone(),
            (Some(names), Some(others)) => names.iter().chain(&**others).cloned().collect(),
        }
    }
}

impl FromIterator<Arc<str>> for GivenNames {
    fn from_iter<I: IntoIterator<Item = Arc<str>>>(names: I) -> Self {
        let names: Arc<[_]> = names.into_iter().collect();
        Self((!names.is_empty()).then_some(names))
    }
}
