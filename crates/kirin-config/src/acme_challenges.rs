//! The challenges that Kirin can answer to an authority, by its listeners.

use kirin_acme::ChallengeKind;
use kirin_http::ListenAddress;

use crate::listener::ListenerConfig;

/// Returns the challenges that listeners can answer, the best first. An authority knows only the
/// ports 80 and 443, which something in front of Kirin may lead to other ports.
pub fn possible_challenges(listeners: &[ListenerConfig]) -> Vec<ChallengeKind> {
    let has_port = |tls: bool, port: u16| {
        let mut of_kind = listeners.iter().filter(|listener| listener.tls.is_some() == tls);
        of_kind.any(|listener| {
            matches!(&listener.address, ListenAddress::Tcp(address) if address.port() == port)
        })
    };
    let is_only_tls = listeners.iter().all(|listener| listener.tls.is_some());
    match (is_only_tls, has_port(true, 443) && !has_port(false, 80)) {
        (true, _) => vec![ChallengeKind::TlsAlpn01],
        (false, true) => vec![ChallengeKind::TlsAlpn01, ChallengeKind::Http01],
        (false, false) => vec![ChallengeKind::Http01, ChallengeKind::TlsAlpn01],
    }
}

#[cfg(test)]
mod tests {
    use super::ChallengeKind::{Http01, TlsAlpn01};
    use super::*;
    use crate::check::tests::check_text;

    fn challenges(tls: &str, plain: Option<&str>) -> Vec<ChallengeKind> {
        let plain = plain.map(|address| format!("[[listener]]\naddress = '{address}'\n"));
        let text = format!(
            "[[listener]]\naddress = '{tls}'\n[listener.tls.acme]\ndomains = ['a.test']\n\
             state = 'acme'\n{}[[route]]\npath = '/'\ntry = ['files:.']\n",
            plain.unwrap_or_default()
        );
        let config = check_text(&text).unwrap();
        config.listeners[0].tls.as_ref().unwrap().acme.as_ref().unwrap().challenges.clone()
    }

    #[test]
    fn the_ports_of_an_authority_decide_and_others_are_tried_too() {
        for (tls, plain, expected) in [
            ("*:443", None, &[TlsAlpn01][..]),
            ("*:443", Some("*:80"), &[Http01, TlsAlpn01]),
            ("*:443", Some("127.0.0.1:8080"), &[TlsAlpn01, Http01]),
            ("*:443", Some("unix:kirin.sock"), &[TlsAlpn01, Http01]),
            ("*:8443", None, &[TlsAlpn01]),
            // Something in front of Kirin leads to these ports.
            ("*:8443", Some("*:8080"), &[Http01, TlsAlpn01]),
        ] {
            assert_eq!(challenges(tls, plain), expected, "{tls} {plain:?}");
        }
    }
}
