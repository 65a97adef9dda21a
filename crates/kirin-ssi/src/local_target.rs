//! Checks that includes name only this server. `http://HOST/PATH` is `/PATH` if HOST is the host of
//! the request, and is refused otherwise. A page must not make the server send requests to others.
//! A `proxy` route is for that.

use bytes::Bytes;

use crate::render_source::RenderSource;

/// Returns `name`, or the path in it. Returns `None` if it names another server. A relative path
/// stays relative.
pub(crate) fn local_target(name: &Bytes, source: &mut impl RenderSource) -> Option<Bytes> {
    let is_scheme = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    let (scheme, rest) = name.split_at(name.iter().take_while(|byte| is_scheme(byte)).count());
    let authority = match (scheme, rest) {
        ([_, ..], [b':', b'/', b'/', authority @ ..]) => authority,
        ([_, ..], [b':', ..]) | ([], [b'/', b'/', ..]) => return None,
        _ => return Some(name.clone()),
    };
    let default_port = match &scheme.to_ascii_lowercase()[..] {
        b"http" => ":80",
        b"https" => ":443",
        _ => return None,
    };
    let path = authority
        .iter()
        .position(|byte| matches!(byte, b'/' | b'?' | b'#'))
        .unwrap_or(authority.len());
    let without_default_port = |host: &[u8]| {
        host.strip_suffix(default_port.as_bytes()).unwrap_or(host).to_ascii_lowercase()
    };
    let is_ours = without_default_port(source.variable("http_host")?.as_ref())
        == without_default_port(&authority[..path]);
    let target = name.slice_ref(&authority[path..]);
    match target.first() {
        _ if !is_ours => None,
        None => Some(Bytes::from_static(b"/")),
        Some(b'/') => Some(target),
        Some(_) => Some(Bytes::from([b"/", &target[..]].concat())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_pages::TestPages;

    #[test]
    fn only_targets_of_this_server_are_requested() {
        for (name, target) in [
            ("/a?b", Some("/a?b")),
            ("a.html", Some("a.html")),
            ("http://example.org/a", Some("/a")),
            ("http://EXAMPLE.org:80/a", Some("/a")),
            ("https://example.org:443/a", Some("/a")),
            ("http://example.org", Some("/")),
            ("http://example.org?a", Some("/?a")),
            ("http://example.org:8080/a", None),
            ("http://example.org.evil/a", None),
            ("http://user@example.org/a", None),
            ("http:///a", None),
            ("//example.org/a", None),
            ("HTTP://other/a", None),
            ("Http://example.org/a", Some("/a")),
            ("mailto:a", None),
            ("ftp://example.org/a", None),
        ] {
            let got = local_target(&Bytes::from(name), &mut TestPages::default());
            assert_eq!(got.as_deref(), target.map(str::as_bytes), "{name}");
        }
    }
}
