//! Requests that are refused, because a web page may have caused them.

use kirin_http::host::without_port;
use kirin_http::{ListenAddress, Origin, RequestHead};

/// Returns why a request is refused, if a browser may have sent it for a page of another site. Such
/// a request has `Origin` or `Sec-Fetch-Site`. After DNS rebinding it has neither, but its `Host`
/// is the name of the other site.
pub fn refusal(request: &RequestHead<'_>, origin: Origin<'_>) -> Option<&'static str> {
    let is_own_site = |site: &[u8]| site == b"none" || site == b"same-origin";
    if request.field("origin").is_some()
        || request.field("sec-fetch-site").is_some_and(|site| !is_own_site(site))
    {
        return Some("requests of web pages are refused\n");
    }
    let is_local = |address: &ListenAddress| match address {
        ListenAddress::Tcp(address) => address.ip().to_canonical().is_loopback(),
        ListenAddress::Unix(_) => false,
    };
    // The metrics may have an address that other machines know by any name.
    if is_local(origin.local) && !is_loopback(request.host) {
        return Some("Host must be 127.0.0.1, [::1] or localhost\n");
    }
    None
}

fn is_loopback(host: &str) -> bool {
    let name = without_port(host);
    let address = name.trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost")
        || address.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::is_loopback;

    #[test]
    fn only_requests_to_a_name_of_this_machine_are_accepted() {
        for host in [
            "127.0.0.1",
            "127.0.0.1:8081",
            "[::1]",
            "[::1]:8081",
            "localhost",
            "LOCALHOST:1",
            "127.1.2.3",
        ] {
            assert!(is_loopback(host), "{host}");
        }
        for host in [
            "",
            "example.org",
            "localhost.example.org",
            "127.0.0.1.example.org:80",
            "10.0.0.1",
            "::1:x",
        ] {
            assert!(!is_loopback(host), "{host}");
        }
    }
}
