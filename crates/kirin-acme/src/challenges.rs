//! The http-01 challenge (RFC 8555 section 8.3), by which an authority checks that a name leads
//! here.
//!
//! The order of a certificate writes the answers, and the event loops read them.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use kirin_http::{AnsweredBy, Body, Method, RequestHead, Response, StatusCode};

/// The path below which an authority asks.
pub const PATH: &str = "/.well-known/acme-challenge/";

/// The key authorizations of open challenges, by token.
#[derive(Debug, Default)]
pub struct Challenges(RwLock<HashMap<String, String>>);

impl Challenges {
    /// Returns the response to a request whose path is below [`PATH`]. Returns none if no such
    /// challenge is open here. The routes may answer it then, since another ACME client may run
    /// there.
    pub fn answer(&self, request: &RequestHead<'_>) -> Option<Response> {
        if request.method != Method::GET {
            return None;
        }
        let token = request.path.strip_prefix(PATH)?;
        let open = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let body = Body::from(open.get(token)?.clone().into_bytes());
        let mut response = Response::new(AnsweredBy::SERVER, StatusCode::OK, body);
        response.fields.push("Content-Type", "application/octet-stream");
        Some(response)
    }

    /// Returns a place for the answers of one order.
    pub fn answers(self: &Arc<Self>) -> OfferedAnswers {
        OfferedAnswers { challenges: Arc::clone(self), tokens: Vec::new() }
    }
}

/// The answers of one order. They are removed when this is dropped.
pub struct OfferedAnswers {
    challenges: Arc<Challenges>,
    tokens: Vec<String>,
}

impl OfferedAnswers {
    /// Adds the answer to the challenge `token`.
    pub fn add(&mut self, token: &str, key_authorization: &str) {
        self.tokens.push(token.to_owned());
        let mut open = self.challenges.0.write().unwrap_or_else(PoisonError::into_inner);
        open.insert(token.to_owned(), key_authorization.to_owned());
    }
}

impl Drop for OfferedAnswers {
    fn drop(&mut self) {
        let mut open = self.challenges.0.write().unwrap_or_else(PoisonError::into_inner);
        self.tokens.iter().for_each(|token| _ = open.remove(token));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answers_of_an_order_are_removed_with_it() {
        let challenges = Arc::new(Challenges::default());
        let open = || challenges.0.read().unwrap().len();
        let mut first = challenges.answers();
        first.add("a", "a.print");
        {
            let mut second = challenges.answers();
            second.add("b", "b.print");
            assert_eq!(open(), 2);
        }
        assert_eq!(challenges.0.read().unwrap().get("a").map(String::as_str), Some("a.print"));
        drop(first);
        assert_eq!(open(), 0);
    }
}
