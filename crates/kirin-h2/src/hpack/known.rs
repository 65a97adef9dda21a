//! The field names that HTTP/2 has rules for.

/// A name that matters for the rules of HTTP/2.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Known {
    /// A name without a rule.
    Other,
    /// `:method`.
    Method,
    /// `:scheme`.
    Scheme,
    /// `:authority`.
    Authority,
    /// `:path`.
    Path,
    /// `:protocol` (RFC 8441).
    Protocol,
    /// `:status`.
    Status,
    /// Any other name that starts with a colon.
    UnknownPseudo,
    /// `cookie`.
    Cookie,
    /// `content-length`.
    ContentLength,
    /// `host`.
    Host,
    /// `expect`.
    Expect,
    /// `te`.
    Te,
    /// A field of the connection, which HTTP/2 forbids (RFC 9113, section 8.2.2).
    ConnectionSpecific,
    /// `priority` (RFC 9218).
    Priority,
}

impl Known {
    /// Finds the rule for a name in lower case.
    pub(super) const fn of(name: &[u8]) -> Self {
        match name {
            b"te" => Self::Te,
            b"host" => Self::Host,
            b":path" => Self::Path,
            b"cookie" => Self::Cookie,
            b"expect" => Self::Expect,
            b":method" => Self::Method,
            b":scheme" => Self::Scheme,
            b":status" => Self::Status,
            b"priority" => Self::Priority,
            b":protocol" => Self::Protocol,
            b":authority" => Self::Authority,
            b"content-length" => Self::ContentLength,
            b"upgrade" | b"connection" | b"keep-alive" | b"proxy-connection"
            | b"transfer-encoding" => Self::ConnectionSpecific,
            [b':', ..] => Self::UnknownPseudo,
            _ => Self::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_known_by_all_their_octets() {
        for (name, known) in [
            (":method", Known::Method),
            (":Method", Known::UnknownPseudo),
            (":", Known::UnknownPseudo),
            (":protocol", Known::Protocol),
            ("", Known::Other),
            ("te", Known::Te),
            ("tf", Known::Other),
            ("cookie", Known::Cookie),
            ("cookie2", Known::Other),
            ("keep-alive", Known::ConnectionSpecific),
            ("connection", Known::ConnectionSpecific),
            ("proxy-connection", Known::ConnectionSpecific),
            ("transfer-encoding", Known::ConnectionSpecific),
            ("upgrade", Known::ConnectionSpecific),
            ("priority", Known::Priority),
        ] {
            assert_eq!(Known::of(name.as_bytes()), known, "{name}");
        }
    }
}
