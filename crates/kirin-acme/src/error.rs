//! Why there is no certificate, and what an operator can do about it.

use std::error::Error;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use instant_acme::Problem;
use kirin_server::TlsError;
use kirin_user::UserError;

use crate::challenge_kind::ChallengeKind;

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub enum AcmeError {
    /// The files cannot be given to the user that serves.
    #[error(transparent)]
    Owner(#[from] UserError),
    /// A file cannot be written or read.
    #[error("cannot keep ACME's keys and certificates: {0}: {1}")]
    State(PathBuf, #[source] io::Error),
    /// The authority refuses a request.
    #[error("{}", .0.detail.as_deref().or(.0.r#type.as_deref()).unwrap_or("the authority does not say why"))]
    Refused(Problem),
    /// The authority found that a name does not lead here.
    #[error("{0}: {1}: {detail}", detail = .2.detail.as_deref().unwrap_or("the authority does not say why"))]
    NotProven(String, ChallengeKind, Problem),
    /// The authority does not offer a challenge of this kind for a name.
    #[error("{0}: the authority offers no challenge {1}")]
    NoChallenge(String, ChallengeKind),
    /// The authority refuses the external account.
    #[error("`external_account`: {}", .0.detail.as_deref().unwrap_or("the authority does not say why"))]
    ExternalAccount(Problem),
    /// The certificate that proves a name cannot be made.
    #[error("{0}: the certificate of the challenge cannot be made: {1}")]
    Proof(String, #[source] rcgen::Error),
    /// The authority cannot be reached, or does not follow the protocol.
    #[error("{}", causes(.0))]
    Talk(instant_acme::Error),
    /// The order takes too long.
    #[error("not done within {} s", .0.as_secs())]
    TimedOut(Duration),
    /// The authority issued a certificate that cannot be used.
    #[error("the certificate cannot be used: {0}")]
    Certificate(String),
    /// The TLS library cannot use the certificate.
    #[error("the certificate cannot be used: {0}")]
    Tls(#[from] TlsError),
}

impl From<instant_acme::Error> for AcmeError {
    fn from(error: instant_acme::Error) -> Self {
        match error {
            instant_acme::Error::Api(problem) => Self::Refused(problem),
            other => Self::Talk(other),
        }
    }
}

impl AcmeError {
    /// Returns what an operator should look at.
    pub fn advice(&self) -> &'static str {
        match self {
            Self::State(..) | Self::Owner(_) => {
                "give Kirin's user a directory of its own with `state`"
            }
            Self::NotProven(_, ChallengeKind::Http01, _) => {
                "the name must lead to this machine in the DNS, and port 80 of it, from the Internet, to Kirin"
            }
            Self::NotProven(_, ChallengeKind::TlsAlpn01, _) => {
                "the name must lead to this machine in the DNS, and port 443 of it, from the Internet, to a listener of Kirin \
                 with TLS, without another server that answers TLS in front of it"
            }
            Self::Refused(problem) => match kind(problem) {
                "rateLimited" => "too much was asked for already; it helps only to wait",
                "rejectedIdentifier" | "unsupportedIdentifier" => {
                    "this authority issues no certificate for such a name: is it spelt right, and public?"
                }
                "caa" => "a CAA record of the name in the DNS forbids this authority",
                "dns" => "the DNS must know the name",
                "invalidContact" | "unsupportedContact" => {
                    "`email` must be an address that takes mail"
                }
                "externalAccountRequired" => {
                    "this authority knows its customers: make an account there, and write its id and key with `external_account`"
                }
                _ => "see what the authority says; another one can be named with `directory`",
            },
            Self::ExternalAccount(_) => {
                "`id` must be the key id that the authority has given you, and `key_file` must have the HMAC key that belongs to it"
            }
            Self::NoChallenge(..) => "take an authority that does, with `directory`",
            Self::Talk(_) => {
                "can this machine reach the address of `directory`, is it right, and are the certificates of authorities installed \
                 (ca-certificates)?"
            }
            Self::TimedOut(_) => "nothing is wrong here if the authority has a bad day",
            Self::Certificate(_) | Self::Tls(_) => "ask the authority",
            Self::Proof(..) => "can the system give random numbers?",
        }
    }

    /// Returns whether a challenge of another kind may prove the names.
    pub fn may_be_proven_otherwise(&self) -> bool {
        match self {
            Self::NoChallenge(..) => true,
            // These say nothing about ports.
            Self::NotProven(_, _, problem) => !matches!(kind(problem), "caa" | "dns"),
            _ => false,
        }
    }

    /// Returns the error of a request for an account that names an external one.
    pub fn of_external_account(self) -> Self {
        match self {
            Self::Refused(problem)
                if matches!(
                    kind(&problem),
                    "externalAccountRequired" | "malformed" | "unauthorized"
                ) =>
            {
                Self::ExternalAccount(problem)
            }
            other => other,
        }
    }

    /// Returns whether another attempt soon makes it worse.
    pub fn is_rate_limit(&self) -> bool {
        matches!(self, Self::Refused(problem) if kind(problem) == "rateLimited")
    }

    /// Returns whether the authority rejected a nonce that it had issued (RFC 8555 section 6.5).
    /// The request is correct and is sent again with the next nonce.
    pub fn is_bad_nonce(&self) -> bool {
        matches!(self, Self::Refused(problem) if kind(problem) == "badNonce")
    }

    /// Returns whether the authority does not know the account any more.
    pub fn is_unknown_account(&self) -> bool {
        matches!(self, Self::Refused(problem) if kind(problem) == "accountDoesNotExist")
    }
}

/// Returns the last part of a problem's type (RFC 8555 section 6.7).
fn kind(problem: &Problem) -> &str {
    problem.r#type.as_deref().and_then(|name| name.rsplit(':').next()).unwrap_or_default()
}

/// Returns an error and its causes as one text. Often only the last cause says what happened.
fn causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        if !text.ends_with(&next) {
            text = format!("{text}: {next}");
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_the_authoritys_reason_and_a_remedy() {
        let refusal = |kind: &str| {
            let problem =
                format!(r#"{{"type": "urn:ietf:params:acme:error:{kind}", "detail": "Said so."}}"#);
            AcmeError::Refused(serde_json::from_str(&problem).unwrap())
        };
        assert_eq!(refusal("caa").to_string(), "Said so.");
        assert!(refusal("caa").advice().contains("CAA record"));
        assert!(refusal("rateLimited").is_rate_limit() && !refusal("caa").is_rate_limit());
        assert!(refusal("accountDoesNotExist").is_unknown_account());
        let not_proven = |kind, reason: &str| {
            let AcmeError::Refused(problem) = refusal(reason) else { panic!("another error") };
            AcmeError::NotProven("a.test".into(), kind, problem)
        };
        let by_tls = not_proven(ChallengeKind::TlsAlpn01, "connection");
        assert_eq!(by_tls.to_string(), "a.test: tls-alpn-01: Said so.");
        assert!(by_tls.advice().contains("port 443") && by_tls.may_be_proven_otherwise());
        let by_http = not_proven(ChallengeKind::Http01, "dns");
        assert!(by_http.advice().contains("port 80") && !by_http.may_be_proven_otherwise());
        let silent = AcmeError::Refused(serde_json::from_str("{}").unwrap());
        assert!(silent.to_string().contains("does not say why") && !silent.advice().is_empty());
    }
}
