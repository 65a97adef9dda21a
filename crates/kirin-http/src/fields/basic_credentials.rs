//! The credentials of `Authorization: Basic` (RFC 7617): a user name and a password.
//!
//! Pure. The access log shows the name; the gateway checks the password.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// The longest value that is parsed. Clients choose its length, and checking a password costs time
/// in proportion to that.
const MAX_BYTES: usize = 1024;

/// The credentials that a client has sent. `Debug` shows the name only.
#[derive(Clone, PartialEq, Eq)]
pub struct BasicCredentials {
    /// The user name. It has no colon and no control character.
    pub user: Vec<u8>,
    /// The password.
    pub password: Vec<u8>,
}

impl BasicCredentials {
    /// Parses the value of an `Authorization` field. Returns `None` if it has another scheme or is
    /// malformed.
    pub fn parse(value: &[u8]) -> Option<Self> {
        let (scheme, encoded) = value.split_at_checked(6)?;
        if !scheme.eq_ignore_ascii_case(b"basic ") || encoded.len() > MAX_BYTES {
            return None;
        }
        let mut user = STANDARD.decode(encoded.trim_ascii()).ok()?;
        let colon = memchr::memchr(b':', &user)?;
        let password = user.split_off(colon + 1);
        user.truncate(colon);
        // Neither may have control characters (RFC 7617 section 2).
        let is_clean = |text: &[u8]| !text.iter().any(u8::is_ascii_control);
        (is_clean(&user) && is_clean(&password)).then_some(Self { user, password })
    }
}

impl std::fmt::Debug for BasicCredentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "BasicCredentials({:?})", String::from_utf8_lossy(&self.user))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(value: &str) -> Option<(String, String)> {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        BasicCredentials::parse(value.as_bytes()).map(|c| (text(c.user), text(c.password)))
    }

    #[test]
    fn name_and_password_are_divided_by_the_first_colon() {
        let pair = |user: &str, password: &str| Some((user.to_owned(), password.to_owned()));
        for (value, expected) in [
            ("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==", pair("Aladdin", "open sesame")),
            ("basic dGVzdDoxMjPCow==", pair("test", "123£")),
            ("BASIC  YTpiOmM=", pair("a", "b:c")),
            ("Basic Og==", pair("", "")),
            ("Basic YQ==", None),
            ("Basic YTpi!", None),
            ("Basic YTpiCg==", None),
            ("Basic", None),
            ("Basic ", None),
            ("Bearer YTpi", None),
            ("", None),
        ] {
            assert_eq!(parse(value), expected, "{value}");
        }
        assert_eq!(
            parse(&format!("Basic {}", STANDARD.encode("a:".to_owned() + &"x".repeat(1000)))),
            None
        );
    }

    #[test]
    fn the_password_is_not_shown() {
        let credentials = BasicCredentials::parse(b"Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==").unwrap();
        assert_eq!(format!("{credentials:?}"), "BasicCredentials(\"Aladdin\")");
    }

    proptest! {
        #[test]
        fn any_value_is_read_without_a_panic(value in prop::collection::vec(any::<u8>(), 0..40)) {
            let _ = BasicCredentials::parse(&value);
        }
    }
}
