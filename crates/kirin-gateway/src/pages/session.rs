//! The visitor's session: the item of the site whose key is the value of one cookie, as
//! Plack::Middleware::Session::Kirin and Session::Simple write it.
//!
//! A visitor chooses the cookie. So only a value that can be a session id is looked up, and only an
//! item that is a JSON object is a session. No visitor can name a page, a counter or other data of
//! the application.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use kirin_http::cookies::{cookie_fields, cookie_like_plack};
use kirin_store::{ItemRef, Namespace, Now, Store};

use crate::pages::session_item::SessionItem;
use crate::request::context::Request;

/// The length of a session id in hexadecimal digits. Shorter ones could be guessed; those of
/// Session::Kirin have 40.
const ID_DIGITS: std::ops::RangeInclusive<usize> = 32..=128;

/// The session of one request.
#[derive(Clone, Debug)]
pub struct Session(Arc<SessionItem>);

impl Session {
    /// Returns the session that an item of `store` is, if it is one.
    pub fn of_item(item: &ItemRef, store: &Store, now: Now) -> Option<Self> {
        // The application has invalidated a stale item.
        if item.is_stale() {
            return None;
        }
        let session = store.companion::<SessionItem>(item, now, SessionItem::parse);
        session.is_session().then_some(Self(session))
    }

    /// Returns the variable `name`: `session` itself, or `session.` and the path of a member.
    pub fn variable(&self, name: &str) -> Option<Bytes> {
        match name.strip_prefix("session")? {
            "" => Some(Bytes::from_static(b"1")),
            rest => self.0.member(rest.strip_prefix('.')?),
        }
    }
}

/// Returns the key of the session that the cookie `cookie` of `request` names.
pub fn key_of_request<'a>(request: &Request<'a>, cookie: &str) -> Option<Cow<'a, [u8]>> {
    key_of_cookies(cookie_fields(request.head), cookie, request.namespace)
}

/// Returns the key of the session that the values of all `Cookie` fields name.
pub fn key_of_cookies<'a>(
    fields: impl Iterator<Item = &'a [u8]>,
    cookie: &str,
    namespace: &Namespace,
) -> Option<Cow<'a, [u8]>> {
    namespace.full_name(session_id(fields, cookie)?)
}

/// Returns whether `name` is the name of a variable that a session may have.
pub fn is_variable(name: &str) -> bool {
    name.strip_prefix("session").is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Returns the value of the first cookie of this name, if it can be a session id. As in
/// Cookie::Baker the first counts: page and application must see the same visitor.
fn session_id<'a>(fields: impl Iterator<Item = &'a [u8]>, cookie: &str) -> Option<&'a [u8]> {
    let value = cookie_like_plack(fields, cookie.as_bytes())?;
    (ID_DIGITS.contains(&value.len()) && value.iter().all(u8::is_ascii_hexdigit)).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kirin_store::{NewItem, StoreConfig};

    const NOW: Now = Now::from_unix_seconds(1_000);
    const ID: &str = "0123456789abcdef0123456789abcdef01234567";

    fn store(key: &str, value: &str) -> Store {
        let store = Store::new(StoreConfig::default());
        assert!(store.set(key.as_bytes(), NewItem::new(value.as_bytes()), NOW).is_stored());
        store
    }

    fn session(store: &Store, cookies: &[&str]) -> Option<Session> {
        let fields = cookies.iter().map(|line| line.as_bytes());
        let id = session_id(fields, "sid")?;
        Session::of_item(&store.get(id, NOW)?, store, NOW)
    }

    #[test]
    fn the_session_is_the_item_that_the_cookie_names() {
        let store = store(ID, r#"{"name":"mari"}"#);
        for cookies in [
            vec![format!("sid={ID}")],
            vec![format!("a=b; sid={ID}; c=d")],
            vec![format!("a=b;sid=\"{ID}\"")],
            vec!["a=b".to_owned(), format!("xsid=1; sid={ID}")],
            vec![format!("sid={ID}; sid={}", ID.replace('0', "f"))],
        ] {
            let lines: Vec<_> = cookies.iter().map(String::as_str).collect();
            let session = session(&store, &lines).unwrap_or_else(|| panic!("{cookies:?}"));
            assert_eq!(session.variable("session").unwrap(), "1");
            assert_eq!(session.variable("session.name").unwrap(), "mari");
        }
    }

    #[test]
    fn without_the_cookie_or_the_item_there_is_none() {
        let store = store(ID, r#"{"name":"mari"}"#);
        let other = ID.replace('0', "f");
        for cookies in [
            String::new(),
            "sid=".into(),
            "sid".into(),
            format!("xsid={ID}"),
            format!("SID={ID}"),
            format!("sid={other}"),
            format!("sid={other}; sid={ID}"),
            format!("sid=\"{ID}"),
            format!("sid={ID}x"),
        ] {
            assert!(session(&store, &[&cookies]).is_none(), "{cookies}");
        }
        assert!(session(&store, &[]).is_none());
    }

    #[test]
    fn a_visitor_cannot_name_an_item_that_is_no_session() {
        for (key, value) in [
            ("/", r#"{"name":"mari"}"#),
            ("memo/ledger", r#"{"name":"mari"}"#),
            ("0123456789abcdef", r#"{"name":"mari"}"#),
            ("0123456789abcdef0123456789abcdeg", r#"{"name":"mari"}"#),
            (ID, "12"),
            (ID, r#"["mari"]"#),
            (ID, r#""mari""#),
            (ID, "text/html\r\n<p>"),
            (ID, ""),
        ] {
            assert!(
                session(&store(key, value), &[&format!("sid={key}")]).is_none(),
                "{key} {value}"
            );
        }
    }

    #[test]
    fn an_item_that_has_expired_or_was_removed_is_no_session() {
        let store = store(ID, r#"{"name":"mari"}"#);
        let cookie = format!("sid={ID}");
        assert!(session(&store, &[&cookie]).is_some());
        store.delete(ID.as_bytes(), NOW);
        assert!(session(&store, &[&cookie]).is_none());
    }

    #[test]
    fn a_session_is_parsed_once_and_again_when_it_is_set_again() {
        let store = store(ID, r#"{"name":"mari"}"#);
        let cookie = format!("sid={ID}");
        let used = store.used_bytes();
        let first = session(&store, &[&cookie]).unwrap();
        assert!(store.used_bytes() > used, "it is counted in the budget");
        assert!(Arc::ptr_eq(&first.0, &session(&store, &[&cookie]).unwrap().0));
        assert!(store.set(ID.as_bytes(), NewItem::new(br#"{"name":"bea"}"#), NOW).is_stored());
        assert_eq!(session(&store, &[&cookie]).unwrap().variable("session.name").unwrap(), "bea");
    }
}
