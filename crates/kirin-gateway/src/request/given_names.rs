//! The names of fields that a rule of a route has set, in place of those of the client.
//!
//! Code gets such a field also if a client must not send it, such as `Remote-User`.

use std::sync::Arc;

use kirin_http::proxy_fields::is_unambiguous;

/// Fields that a rule must not set: those of the connection and the framing, and those that Kirin
/// writes for each request itself.
const OF_KIRIN: [&str; 17] = [
    "accept-encoding",
    "connection",
    "content-length",
    "expect",
    "forwarded",
    "host",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
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
    match OF_KIRIN.iter().any(|other| other.eq_ignore_ascii_case(name)) {
        true => Err("this field is Kirin's own: it cannot be set".into()),
        false => Ok(()),
    }
}

/// The names of such fields. A clone is cheap.
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
