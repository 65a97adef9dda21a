//! Sockets of uWSGI as listeners.

use crate::draft::Draft;
use crate::uwsgi::options::UwsgiOption;

/// The protocols of the sockets that Kirin has no listener for.
const OTHER_PROTOCOLS: [&str; 7] = [
    "socket",
    "uwsgi-socket",
    "fastcgi-socket",
    "scgi-socket",
    "suwsgi-socket",
    "uwsgi-fastcgi-socket",
    "socket-protocol",
];

/// Reads an option about a socket. Returns whether it is one.
pub(crate) fn socket(option: &UwsgiOption, draft: &mut Draft, has_http: bool) -> bool {
    let directive = option.directive();
    match option.key.as_str() {
        "http" | "http-socket" | "http11-socket" | "http-router" => http(option, draft),
        "https" | "https2" | "https-socket" | "sh" => https(option, draft),
        "http-to-https" => {
            let Some(address) = address(&option.value) else { return left_out(option, draft) };
            let listener = draft.listener(&address);
            listener.section.set("redirect_to_https", 443);
            draft.notes.carried(&option.place, &directive, "With 308.");
        }
        key if OTHER_PROTOCOLS.contains(&key) && has_http => {
            let text = "Kirin listens for HTTP only, and it has such a listener";
            draft.notes.left_out(&option.place, &directive, text);
        }
        key if OTHER_PROTOCOLS.contains(&key) => binary_socket(option, draft),
        _ => return false,
    }
    true
}

/// Returns whether an option is an HTTP socket.
pub(crate) fn is_http(key: &str) -> bool {
    matches!(key, "http" | "http-socket" | "http11-socket" | "https" | "https2" | "https-socket")
}

fn http(option: &UwsgiOption, draft: &mut Draft) {
    let Some(address) = address(&option.value) else {
        left_out(option, draft);
        return;
    };
    let place = option.place.to_string();
    let section = &mut draft.listener(&address).section;
    section.comment(place);
    draft.notes.carried(&option.place, &option.directive(), "");
}

/// Reads `ADDRESS,CERTIFICATE,KEY[,CIPHERS[,CLIENT_CA]]`.
fn https(option: &UwsgiOption, draft: &mut Draft) {
    let mut parts = option.value.split(',').map(str::trim);
    let found = (parts.next().and_then(address), parts.next(), parts.next());
    let (Some(address), Some(chain), Some(key)) = found else {
        let text = "write `address` and `certificates` of a listener (docs/tls.md)";
        draft.notes.left_out(&option.place, &option.directive(), text);
        return;
    };
    let listener = draft.listener(&address);
    listener.section.comment(option.place.to_string());
    listener.certificate(chain, key);
    let ciphers = parts.next().is_some_and(|ciphers| !ciphers.is_empty());
    if let Some(authority) = parts.next().filter(|authority| !authority.is_empty()) {
        listener.tls.set("client_ca", authority.trim_start_matches('!'));
        if !authority.starts_with('!') {
            listener.tls.set("client_verify", "optional");
        }
    }
    let text = if ciphers { "Kirin has its own choice of ciphers." } else { "" };
    draft.notes.carried(&option.place, &option.directive(), text);
}

/// Makes a listener for HTTP of a socket on which a server in front spoke another protocol.
fn binary_socket(option: &UwsgiOption, draft: &mut Draft) {
    let Some(address) = address(&option.value) else {
        left_out(option, draft);
        return;
    };
    let peer = match address.strip_prefix("unix:") {
        Some(_) => "unix:",
        None if address.starts_with("127.") => "127.0.0.1",
        None => "",
    };
    let section = &mut draft.listener(&address).section;
    section.comment(format!("{}, for HTTP", option.place));
    if !peer.is_empty() {
        section.set("trusted", vec![peer]);
    }
    let text = "Kirin listens for HTTP on this socket. In the nginx in front write `proxy_pass` in \
                place of `uwsgi_pass`, with `X-Forwarded-For`, or let Kirin take its place. \
                Addresses of clients count from `trusted` servers only";
    draft.notes.left_out(&option.place, &option.directive(), text);
}

fn left_out(option: &UwsgiOption, draft: &mut Draft) -> bool {
    let text = "an address of Kirin is `HOST:PORT`, `*:PORT` or `unix:PATH`";
    draft.notes.left_out(&option.place, &option.directive(), text);
    true
}

/// Returns an address of uWSGI as one of Kirin.
pub(crate) fn address(address: &str) -> Option<String> {
    if address.starts_with('/') {
        return Some(format!("unix:{address}"));
    }
    let (host, port) = address.rsplit_once(':')?;
    port.parse::<u16>().ok()?;
    if host.contains(['/', ',', ' ', '=', '@']) {
        return None;
    }
    Some(if host.is_empty() { format!("*:{port}") } else { address.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_those_of_kirin() {
        for (text, expected) in [
            (":80", Some("*:80")),
            ("127.0.0.1:80", Some("127.0.0.1:80")),
            ("[::]:80", Some("[::]:80")),
            ("/run/a.sock", Some("unix:/run/a.sock")),
            ("@abstract", None),
            ("=0", None),
            ("a:b", None),
        ] {
            assert_eq!(address(text).as_deref(), expected, "{text}");
        }
    }
}
