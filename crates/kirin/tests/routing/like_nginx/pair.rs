//! Two configurations that say the same, and the requests that are sent to both.

/// Two configurations, their files and requests.
pub struct Pair {
    /// What the pair is about.
    pub name: &'static str,
    /// A part of nginx's `http` block: servers that listen on `{listen}`.
    pub nginx: &'static str,
    /// A part of kirin.toml: more keys of the listener, then routes or sites.
    pub kirin: &'static str,
    /// Names and contents of files in `{files}`.
    pub files: &'static [(&'static str, &'static str)],
    /// The requests, in the order in which they are sent.
    pub requests: &'static [Request],
}

/// A request and how the answers to it compare.
pub struct Request {
    /// The request as it is sent, if it has a CR LF. Otherwise method and target, fields in lines,
    /// and a body behind an empty line.
    pub text: &'static str,
    /// What the comparison of the answers gives.
    pub expected: Expected,
}

/// How two answers compare.
#[derive(Clone, Copy)]
pub enum Expected {
    /// The same, apart from what is not compared.
    Alike,
    /// Different in some parts.
    Differs {
        /// The parts of nginx's answer that differ.
        nginx: &'static str,
        /// The parts of Kirin's answer that differ.
        kirin: &'static str,
        /// Why they differ.
        reason: &'static str,
    },
}

/// Returns a request that both answer alike.
pub const fn alike(text: &'static str) -> Request {
    Request { text, expected: Expected::Alike }
}

/// Returns a request that both answer differently, with the parts that differ and the reason.
pub const fn differs(
    text: &'static str,
    nginx: &'static str,
    kirin: &'static str,
    reason: &'static str,
) -> Request {
    Request { text, expected: Expected::Differs { nginx, kirin, reason } }
}
