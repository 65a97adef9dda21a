//! Fields that proxies write about a request, and that applications therefore believe.
//!
//! The list is for the crates that pass requests on (`kirin-proxy`, `kirin-cgi`), that store
//! responses (`kirin-cache`), and that ask whether a request came through a proxy. Such a field
//! from a stranger is dropped. One from a trusted proxy may be passed on.

/// The subject of such a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyField {
    /// The client's location. The same page is right for other clients, too.
    Client,
    /// The same, in a field of one network, which an application knows by that name.
    Cdn,
    /// The visitor, whom the proxy has asked for a password or certificate.
    User,
    /// The scheme, name and path of the site, from which links are made.
    Site,
    /// How the application should have a file sent. The application and the server directly in
    /// front of it use it.
    Sending,
}

/// The names in lower case. The list has the well-known names, and those that reverse-proxy
/// middleware of Plack, Rack, Rails, Django, Werkzeug, Spring and Symfony has believed. It has
/// `x-original-url` of IIS, by which a request can bypass the rules for its path. It has the fields
/// of content delivery networks, and the fields in which they and single sign-on name the visitor.
///
/// `X-HTTP-Method-Override` is not in it: clients write it, and Rails and
/// Plack::Middleware::MethodOverride obey it for POST only. `X-Auth-User` is not in it, because
/// clients sign in with it.
const NAMES: [(&str, ProxyField); 80] = [
    ("forwarded", ProxyField::Client),
    ("x-real-ip", ProxyField::Client),
    ("x-client-ip", ProxyField::Client),
    ("client-ip", ProxyField::Client),
    ("x-cluster-client-ip", ProxyField::Client),
    ("x-forwarded", ProxyField::Client),
    ("x-forwarded-for", ProxyField::Client),
    ("x-forwarded-by", ProxyField::Client),
    ("x-forwarded-client-cert", ProxyField::User),
    ("x-forwarded-user", ProxyField::User),
    ("x-forwarded-email", ProxyField::User),
    ("x-forwarded-groups", ProxyField::User),
    ("x-forwarded-preferred-username", ProxyField::User),
    ("x-original-host", ProxyField::Site),
    ("x-original-url", ProxyField::Site),
    ("x-rewrite-url", ProxyField::Site),
    ("x-script-name", ProxyField::Site),
    ("x-scheme", ProxyField::Site),
    ("x-url-scheme", ProxyField::Site),
    ("front-end-https", ProxyField::Site),
    ("x-sendfile-type", ProxyField::Sending),
    ("x-accel-mapping", ProxyField::Sending),
    ("x-original-for", ProxyField::Client),
    ("x-originating-ip", ProxyField::Client),
    ("x-remote-ip", ProxyField::Client),
    ("x-remote-addr", ProxyField::Client),
    ("remote-addr", ProxyField::Client),
    ("proxy-client-ip", ProxyField::Client),
    ("wl-proxy-client-ip", ProxyField::Client),
    ("x-proxyuser-ip", ProxyField::Client),
    ("true-client-ip", ProxyField::Cdn),
    ("cf-connecting-ip", ProxyField::Cdn),
    ("cf-connecting-ipv6", ProxyField::Cdn),
    ("cf-connecting-o2o", ProxyField::Cdn),
    ("cf-pseudo-ipv4", ProxyField::Cdn),
    ("fastly-client-ip", ProxyField::Cdn),
    ("fly-client-ip", ProxyField::Cdn),
    ("x-azure-clientip", ProxyField::Cdn),
    ("x-azure-socketip", ProxyField::Cdn),
    ("x-appengine-user-ip", ProxyField::Cdn),
    ("x-envoy-external-address", ProxyField::Cdn),
    ("x-nf-client-connection-ip", ProxyField::Cdn),
    ("x-vercel-forwarded-for", ProxyField::Cdn),
    ("cloudfront-viewer-address", ProxyField::Cdn),
    ("remote-user", ProxyField::User),
    ("x-remote-user", ProxyField::User),
    ("x-remote-group", ProxyField::User),
    ("x-remote-groups", ProxyField::User),
    ("x-remote-email", ProxyField::User),
    ("x-remote-name", ProxyField::User),
    ("x-webauth-user", ProxyField::User),
    ("x-authenticated-user", ProxyField::User),
    ("x-auth-request-user", ProxyField::User),
    ("x-auth-request-email", ProxyField::User),
    ("x-auth-request-groups", ProxyField::User),
    ("x-auth-request-preferred-username", ProxyField::User),
    ("x-authenticated-userid", ProxyField::User),
    ("x-ssl-client-cert", ProxyField::User),
    ("x-ssl-client-verify", ProxyField::User),
    ("x-ssl-client-dn", ProxyField::User),
    ("x-ssl-client-s-dn", ProxyField::User),
    ("x-ssl-client-serial", ProxyField::User),
    ("ssl-client-cert", ProxyField::User),
    ("ssl-client-verify", ProxyField::User),
    ("ssl-client-s-dn", ProxyField::User),
    ("ssl-client-subject-dn", ProxyField::User),
    ("x-client-cert", ProxyField::User),
    ("x-client-dn", ProxyField::User),
    ("x-client-verify", ProxyField::User),
    ("x-arr-clientcert", ProxyField::User),
    ("client-cert", ProxyField::User),
    ("client-cert-chain", ProxyField::User),
    ("x-host", ProxyField::Site),
    ("x-http-host-override", ProxyField::Site),
    ("x-original-uri", ProxyField::Site),
    ("x-original-method", ProxyField::Site),
    ("x-proto", ProxyField::Site),
    ("x-arr-ssl", ProxyField::Site),
    ("cf-visitor", ProxyField::Site),
    ("cloudfront-forwarded-proto", ProxyField::Site),
];

/// Returns the subject of the field `name` if only proxies may write it.
pub fn proxy_field(name: &str) -> Option<ProxyField> {
    // The first letter decides for many fields of a request.
    let first = name.as_bytes().first().map(u8::to_ascii_lowercase);
    if !matches!(first, Some(b'x' | b'f' | b'c' | b't' | b'r' | b's' | b'p' | b'w')) {
        return None;
    }
    if let Some((_, field)) = NAMES.iter().find(|(other, _)| other.eq_ignore_ascii_case(name)) {
        return Some(*field);
    }
    let start = name.get(..PREFIX.len())?;
    start.eq_ignore_ascii_case(PREFIX).then_some(ProxyField::Site)
}

/// The prefixes of names that only proxies write. Fields with such a name that are not in the list
/// are about the site.
const PREFIX: &str = "x-forwarded-";

/// Returns whether a name stays the same wherever it is passed. In a CGI environment `X_Real_IP`
/// becomes `X-Real-IP`, and in PHP `X.Real.IP` does, too. So names with other characters than
/// letters, digits and hyphens would bypass the list. They are not passed on (nginx calls them
/// invalid).
pub fn is_unambiguous(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_proxies_are_distinguished_from_fields_of_clients() {
        for (name, expected) in [
            ("X-Forwarded-For", Some(ProxyField::Client)),
            ("FORWARDED", Some(ProxyField::Client)),
            ("Client-IP", Some(ProxyField::Client)),
            ("X-Forwarded-User", Some(ProxyField::User)),
            ("x-forwarded-prefix", Some(ProxyField::Site)),
            ("X-Forwarded-Anything", Some(ProxyField::Site)),
            ("X-Original-URL", Some(ProxyField::Site)),
            ("Front-End-Https", Some(ProxyField::Site)),
            ("X-Accel-Mapping", Some(ProxyField::Sending)),
            ("X-Forwarded", Some(ProxyField::Client)),
            ("True-Client-IP", Some(ProxyField::Cdn)),
            ("CF-Connecting-IP", Some(ProxyField::Cdn)),
            ("Proxy-Client-IP", Some(ProxyField::Client)),
            ("WL-Proxy-Client-IP", Some(ProxyField::Client)),
            ("X-Remote-User", Some(ProxyField::User)),
            ("Remote-User", Some(ProxyField::User)),
            ("SSL-Client-Verify", Some(ProxyField::User)),
            ("X-Host", Some(ProxyField::Site)),
            ("X-HTTP-Method-Override", None),
            ("X-Auth-User", None),
            ("X-Forwardedé", None),
            ("X-Original-Filename", None),
            ("From", None),
            ("Cookie", None),
            ("", None),
        ] {
            assert_eq!(proxy_field(name), expected, "{name}");
        }
    }

    #[test]
    fn a_name_that_could_become_another_is_ambiguous() {
        for (name, expected) in [
            ("X-Real-IP", true),
            ("DNT", true),
            ("X_Real_IP", false),
            ("X.Real.IP", false),
            ("X!", false),
        ] {
            assert_eq!(is_unambiguous(name), expected, "{name}");
        }
    }
}
