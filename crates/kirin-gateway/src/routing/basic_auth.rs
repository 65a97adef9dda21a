//! The `basic_auth` of a route: the users that may see it (RFC 7617).
//!
//! The router asks it before any place. A password that was right a short while ago is accepted at
//! once. All others need a check, which takes time.

use std::path::Path;
use std::sync::Arc;

use http::StatusCode;
use kirin_balance::ClientKey;
use kirin_http::{BasicCredentials, Peer, RequestHead, Response, address_key};

use crate::routing::password_checks::{Busy, PasswordChecks};
use crate::routing::password_file::{Account, PasswordFile};

/// The values of `basic_auth` and `basic_auth_realm`.
#[derive(Debug)]
pub struct BasicAuth {
    file: PasswordFile,
    checks: Arc<PasswordChecks>,
    /// The value of `WWW-Authenticate`.
    challenge: String,
}

/// The result for a request.
pub enum Admission {
    /// Its user is known.
    Admitted(String),
    /// It gets this response.
    Refused(Response),
    /// Its password must be checked.
    ToCheck(PasswordCheck),
}

/// A password check that must be done.
pub struct PasswordCheck {
    account: Account,
    credentials: BasicCredentials,
    user: String,
    client: ClientKey,
    now: u64,
}

impl BasicAuth {
    /// Reads the password file. The error is for the author of the configuration.
    pub fn open(file: &Path, realm: &str, checks: Arc<PasswordChecks>) -> Result<Self, String> {
        if realm.contains(['"', '\\']) || realm.chars().any(|c| c.is_control() || !c.is_ascii()) {
            return Err(format!("realm `{realm}`: it must be ASCII without `\"` and `\\`"));
        }
        let challenge = format!("Basic realm=\"{realm}\", charset=\"UTF-8\"");
        Ok(Self { file: PasswordFile::open(file)?, checks, challenge })
    }

    /// Returns the path of the password file.
    pub fn file_path(&self) -> &Path {
        self.file.path()
    }

    /// Returns a warning if hashes of the file are weak.
    pub fn weakness(&self) -> Option<String> {
        self.file.weakness()
    }

    /// Reads the credentials of `request` from `peer`. `now` is in seconds.
    pub fn admit(&self, request: &RequestHead<'_>, peer: &Peer, now: u64) -> Admission {
        let mut fields =
            request.fields.iter().filter(|field| field.name.eq_ignore_ascii_case("authorization"));
        // Two of them could be read in two ways.
        let (Some(field), None) = (fields.next(), fields.next()) else {
            return Admission::Refused(self.challenge());
        };
        let credentials = BasicCredentials::parse(field.value);
        let named = credentials.and_then(|c| Some((String::from_utf8(c.user.clone()).ok()?, c)));
        let Some((user, credentials)) = named else { return Admission::Refused(self.challenge()) };
        let account = self.file.accounts(now).account(&user);
        if self.checks.knows(&account, &credentials, now) {
            return Admission::Admitted(user);
        }
        let client = address_key(peer);
        Admission::ToCheck(PasswordCheck { account, credentials, user, client, now })
    }

    /// Checks a password. Returns the user, or the response for the request.
    pub async fn check(&self, check: PasswordCheck) -> Result<String, Response> {
        let PasswordCheck { account, credentials, user, client, now } = check;
        match self.checks.check(client, account, &credentials, now).await {
            Ok(true) => Ok(user),
            Ok(false) => Err(self.challenge()),
            Err(Busy) => {
                let mut response = Response::error(StatusCode::SERVICE_UNAVAILABLE);
                response.fields.push("Retry-After", "1");
                Err(response)
            }
        }
    }

    fn challenge(&self) -> Response {
        let mut response = Response::error(StatusCode::UNAUTHORIZED);
        response.fields.push("WWW-Authenticate", &self.challenge);
        response
    }
}
