//! `auth_request` of a route: another program decides whether a visitor may see it.
//!
//! Kirin asks a route of the site, an application or an upstream with the fields of the request. As
//! in nginx (`auth_request`) and Traefik (ForwardAuth), 2xx lets the request pass. The fields that
//! the configuration names go on with it. 401, 403 and redirects are the answer for the visitor.
//! Everything else is a failure, and lets nobody pass.

use std::fmt;
use std::sync::Arc;

use http::StatusCode;
use kirin_http::{FieldLines, Response};

use crate::request::field_changes::FieldChange;
use crate::request::given_names::GivenNames;

/// The program that is asked, and the fields of its answer that go on.
#[derive(Debug)]
pub struct AuthRequest {
    /// The application or the upstream that is asked, as `try` names it, for messages. `None`: the
    /// route of the target's path on the same site.
    pub place: Option<String>,
    /// The path, and perhaps a query, that it is asked for.
    pub target: String,
    /// The fields that places get from its answer.
    pub fields: GivenNames,
    /// The field of its answer with the name of the visitor.
    pub user: Option<Arc<str>>,
    /// The fields of its answer that the visitor gets.
    pub response_fields: Vec<Arc<str>>,
}

/// What the answer of the program says.
#[derive(Debug)]
pub enum Decision {
    /// The request goes on.
    Pass(Grant),
    /// The visitor gets this response.
    Refuse(Response),
}

/// What a request gets that goes on.
#[derive(Debug)]
pub struct Grant {
    /// The name of the visitor.
    pub user: Option<String>,
    /// The fields that replace those of the client.
    pub changes: Vec<FieldChange>,
    /// The fields that are added to the response.
    pub response_fields: FieldLines,
}

impl AuthRequest {
    /// Judges the answer of the program.
    pub fn judge(&self, response: Response) -> Decision {
        let status = response.status;
        if status.is_success() {
            return Decision::Pass(self.grant(&response.fields));
        }
        let is_redirect = status.is_redirection() && status != StatusCode::NOT_MODIFIED;
        if is_redirect || matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            return Decision::Refuse(response);
        }
        tracing::warn!(
            status = status.as_u16(),
            "auth_request: {self} has not decided; expected 2xx, 3xx, 401 or 403"
        );
        let overload = status == StatusCode::SERVICE_UNAVAILABLE;
        let failure = match status {
            StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT => status,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        let mut refusal = Response::error(failure);
        if let Some(time) = response.fields.get("retry-after").filter(|_| overload) {
            refusal.fields.push("Retry-After", time);
        }
        Decision::Refuse(refusal)
    }

    fn grant(&self, answer: &FieldLines) -> Grant {
        let user = self.user.as_ref().and_then(|name| answer.get(name));
        let user = user.map(|user| String::from_utf8_lossy(user).into_owned());
        // A field that the answer does not have is removed, so that no client can forge it.
        let change = |name: &Arc<str>| {
            let mut values: Vec<Vec<u8>> = Vec::new();
            for value in answer.lines(name) {
                // LemonLDAP::NG repeats lines. An application would get `mari, mari`.
                if !values.iter().any(|other| other == value) {
                    values.push(value.to_vec());
                }
            }
            FieldChange::Set(Arc::clone(name), values)
        };
        let mut response_fields = FieldLines::new();
        for name in &self.response_fields {
            for value in answer.lines(name) {
                // The lines of a response are valid.
                let _ = response_fields.try_push(name.as_bytes(), value);
            }
        }
        Grant {
            user: user.filter(|user| !user.is_empty()),
            changes: self.fields.as_slice().iter().map(change).collect(),
            response_fields,
        }
    }
}

/// What is asked, for messages: `/auth`, or `app:NAME for /verify`.
impl fmt::Display for AuthRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            None => f.write_str(&self.target),
            Some(place) => write!(f, "{place} for {}", self.target),
        }
    }
}

#[cfg(test)]
mod tests {
    use kirin_http::{AnsweredBy, Body};

    use super::*;

    fn asked() -> AuthRequest {
        AuthRequest {
            place: None,
            target: "/auth".into(),
            fields: ["Remote-User", "X-Groups"].into_iter().map(Arc::from).collect(),
            user: Some("Remote-User".into()),
            response_fields: vec!["Set-Cookie".into()],
        }
    }

    fn answer(status: u16, fields: &[(&'static str, &str)]) -> Response {
        let status = StatusCode::from_u16(status).unwrap();
        let mut response = Response::new(AnsweredBy::SERVER, status, Body::Empty);
        for (name, value) in fields {
            response.fields.push(name, value);
        }
        response
    }

    #[test]
    fn only_2xx_passes_and_only_decisions_reach_the_visitor() {
        for (status, visitor_gets) in [
            (200, None),
            (204, None),
            (299, None),
            (301, Some(301)),
            (302, Some(302)),
            (304, Some(500)),
            (401, Some(401)),
            (403, Some(403)),
            (404, Some(500)),
            (407, Some(500)),
            (500, Some(500)),
            (501, Some(500)),
            (502, Some(502)),
            (503, Some(503)),
            (504, Some(504)),
        ] {
            let refused = match asked().judge(answer(status, &[("X-Groups", "a")])) {
                Decision::Pass(_) => None,
                Decision::Refuse(response) => {
                    let is_own = !matches!(status, 301 | 302 | 401 | 403);
                    assert_eq!(response.fields.get("x-groups").is_none(), is_own, "{status}");
                    Some(response.status.as_u16())
                }
            };
            assert_eq!(refused, visitor_gets, "{status}");
        }
    }

    #[test]
    fn a_field_that_the_answer_lacks_is_removed_from_the_request() {
        let answer = answer(
            200,
            &[
                ("remote-user", "mari"),
                ("Remote-User", "mari"),
                ("Set-Cookie", "a=1"),
                ("set-cookie", "b=2"),
                ("X-Other", "x"),
            ],
        );
        let Decision::Pass(grant) = asked().judge(answer) else { panic!() };
        assert_eq!(grant.user.as_deref(), Some("mari"));
        assert_eq!(
            grant.changes,
            [
                FieldChange::Set("Remote-User".into(), vec![b"mari".to_vec()]),
                FieldChange::Set("X-Groups".into(), Vec::new()),
            ]
        );
        let cookies: Vec<_> = grant.response_fields.iter().map(|(_, value)| value).collect();
        assert_eq!(cookies, [b"a=1", b"b=2"]);
    }
}
