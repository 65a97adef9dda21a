//! The request of `kirin explain`: a method, a URL and fields become the head that a client would
//! send.

use std::borrow::Cow;
use std::mem::MaybeUninit;

use kirin_http::request::{self, HeadLimits, Parsed};
use kirin_http::token::is_token;
use kirin_http::{RequestHead, proxy_field};

/// A request as text.
#[derive(Debug)]
pub struct RequestText {
    /// The URL as it was given.
    pub url: String,
    /// Whether its scheme is https.
    pub is_secure: bool,
    /// Its port, or that of the scheme.
    pub port: u16,
    head: Vec<u8>,
}

impl RequestText {
    /// Makes the head. The error says what is allowed.
    pub fn new(method: &str, url: &str, headers: &[String]) -> Result<Self, String> {
        let refuse = |why: &str| {
            Err(format!(
                "`{url}`: {why}; allowed is http://HOST/PATH?QUERY or https://HOST/PATH?QUERY"
            ))
        };
        if !is_token(method.as_bytes()) {
            return Err(format!(
                "`{method}` is not a method; allowed are names such as GET, HEAD and POST"
            ));
        }
        if method.bytes().any(|byte| byte.is_ascii_lowercase()) {
            return Err(format!("write `{}`: methods have capitals", method.to_uppercase()));
        }
        if !url.is_empty() && url.bytes().all(|byte| byte.is_ascii_uppercase()) {
            return refuse("this is a method, and the URL after it is missing");
        }
        let Some((scheme, rest)) = url.split_once("://") else { return refuse("it has no scheme") };
        let is_secure = match scheme.to_ascii_lowercase().as_str() {
            "http" => false,
            "https" => true,
            _ => return refuse("its scheme is neither http nor https"),
        };
        let (authority, target) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        if target.contains('#') {
            return refuse("leave out `#` and what follows: clients do not send it");
        }
        if target.contains(|c: char| c.is_ascii_whitespace() || c.is_ascii_control()) {
            return refuse("a space is written `%20`");
        }
        if authority.is_empty() || authority.contains('@') {
            return refuse("its host is missing, or has a user before it");
        }
        let default_port = if is_secure { 443 } else { 80 };
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => match port.parse() {
                // Clients leave out the port of the scheme.
                Ok(port) if port == default_port => (host, port),
                Ok(port) => (authority, port),
                Err(_) => return refuse("its port is not a number up to 65535"),
            },
            _ => (authority, default_port),
        };
        let slash = if target.starts_with('/') { "" } else { "/" };
        let mut head = format!("{method} {slash}{target} HTTP/1.1\r\nHost: {host}\r\n");
        for header in headers {
            let (name, value) = read_header(header)?;
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        Ok(Self { url: url.to_owned(), is_secure, port, head: head.into_bytes() })
    }

    /// Calls `work` with the head, as Kirin would parse it. The error says what Kirin would answer.
    pub fn parse<R>(&self, work: impl FnOnce(&RequestHead<'_>) -> R) -> Result<R, String> {
        let mut bytes = Cow::Borrowed(&self.head);
        let mut storage = [const { MaybeUninit::uninit() }; request::MAX_FIELDS];
        if let Ok(Parsed::RawTarget) =
            request::parse(&self.head, &mut storage, &HeadLimits::default())
        {
            bytes = Cow::Owned(request::escape_target(&self.head).0);
        }
        let mut storage = [const { MaybeUninit::uninit() }; request::MAX_FIELDS];
        match request::parse(&bytes, &mut storage, &HeadLimits::default()) {
            Ok(Parsed::Complete(head, _)) => Ok(work(&head)),
            Ok(Parsed::Partial | Parsed::RawTarget) => {
                Err(format!("`{}` makes no complete request", self.url))
            }
            Err(reject) => Err(format!(
                "no route gets this request: {reject}; Kirin answers it with {}",
                reject.status()
            )),
        }
    }
}

/// Returns the name and the value of `Name: value`.
fn read_header(text: &str) -> Result<(&str, &str), String> {
    let refuse = |why: &str| Err(format!("-H `{text}`: {why}"));
    let Some((name, value)) = text.split_once(':') else {
        return refuse("a header is written `Name: value`");
    };
    if !is_token(name.as_bytes()) {
        return refuse("its name has letters, digits and `-`, and no space");
    }
    if value.contains(|c: char| c.is_control() && c != '\t') {
        return refuse("its value has a control character");
    }
    if name.eq_ignore_ascii_case("host") {
        return refuse("the host is that of the URL");
    }
    if proxy_field(name).is_some() {
        return refuse("Kirin believes it from trusted proxies only; name the client by --client");
    }
    Ok((name, value.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(method: &str, url: &str, headers: &[&str]) -> Result<String, String> {
        let headers: Vec<String> = headers.iter().map(|header| (*header).to_owned()).collect();
        let text = RequestText::new(method, url, &headers)?;
        let (port, is_secure) = (text.port, text.is_secure);
        text.parse(|head| {
            format!("{} {} {} {port} {is_secure}", head.method, head.host, head.target)
        })
    }

    #[test]
    fn a_url_becomes_the_head_that_a_client_sends() {
        for (url, expected) in [
            ("http://a.test", "GET a.test / 80 false"),
            ("HTTPS://A.test/x?y", "GET A.test /x?y 443 true"),
            ("https://a.test:443?y", "GET a.test /?y 443 true"),
            ("https://a.test:8443/", "GET a.test:8443 / 8443 true"),
            ("http://[::1]/", "GET [::1] / 80 false"),
            ("http://[::1]:8080/", "GET [::1]:8080 /  8080 false"),
            ("http://a.test/\u{fc}", "GET a.test /%C3%BC 80 false"),
            ("http://a.test//x/../y", "GET a.test //x/../y 80 false"),
        ] {
            let expected = expected.replace("  ", " ");
            assert_eq!(parsed("GET", url, &["X-A: 1"]), Ok(expected), "{url}");
        }
    }

    #[test]
    fn an_invalid_request_is_refused_with_what_is_allowed() {
        for (method, url, header, message) in [
            ("get", "http://a.test/", "", "write `GET`"),
            ("G T", "http://a.test/", "", "is not a method"),
            ("", "http://a.test/", "", "is not a method"),
            ("TRACE", "http://a.test/", "", "501"),
            ("GET", "a.test/x", "", "no scheme"),
            ("GET", "/x", "", "https://HOST/PATH"),
            ("GET", "ftp://a.test/", "", "neither http nor https"),
            ("GET", "http:///x", "", "host is missing"),
            ("GET", "http://u:p@a.test/", "", "user before it"),
            ("GET", "http://a.test:99999/", "", "not a number"),
            ("GET", "http://a.test/#x", "", "clients do not send it"),
            ("GET", "http://a.test/a b", "", "`%20`"),
            ("GET", "http://a b/", "", "400"),
            ("GET", "http://a.test/", "X-A", "`Name: value`"),
            ("GET", "http://a.test/", "X A: 1", "no space"),
            ("GET", "http://a.test/", "X-A: \r\nX-B: 1", "control character"),
            ("GET", "http://a.test/", "Host: b.test", "that of the URL"),
            ("GET", "http://a.test/", "X-Forwarded-For: 1.2.3.4", "--client"),
            ("GET", "http://a.test/", "Content-Length: x", "400"),
        ] {
            let headers: &[&str] = if header.is_empty() { &[] } else { &[header] };
            let error = parsed(method, url, headers).unwrap_err();
            assert!(error.contains(message), "{method} {url} {header}: {error}");
        }
    }
}
