//! The counters of one listener on one event loop. The loop writes them, and any thread reads them.

use kirin_http::request::Reject;
use kirin_metrics::Count;

/// The reasons of [`ConnectionCounters::rejected`], by [`Reject::index`].
const REJECTS: [&str; Reject::KINDS] = [
    "bad_request",
    "length_required",
    "target_too_long",
    "head_too_large",
    "misdirected",
    "method",
    "transfer_coding",
    "version",
    "expectation",
    "too_early",
];

/// The counters of one listener on one event loop.
#[derive(Debug, Default)]
pub struct ConnectionCounters {
    /// Connections that were accepted.
    pub accepted: Count,
    /// Connections that were refused because their address has too many.
    pub refused_address: Count,
    /// Connections that were refused because an operator has blocked their address.
    pub refused_blocked: Count,
    /// Pauses of accepting because there are as many connections as `connections` allows.
    pub paused_connections: Count,
    /// Pauses of accepting because no descriptor or memory was left.
    pub paused_descriptors: Count,
    /// The open connections, as of the last second.
    pub open: OpenCounts,
    /// Connections that were ended because their time was over.
    pub timed_out: TimeoutCounts,
    /// Connections of the address that held most bytes, which were cut.
    pub cut_heaviest: Count,
    /// TLS handshakes.
    pub handshakes: HandshakeCounts,
    /// HTTP/2 connections.
    pub http2_connections: Count,
    /// HTTP/2 streams, which are requests.
    pub http2_streams: Count,
    /// HTTP/2 connections that were ended because the client reset stream after stream.
    pub http2_resets: Count,
    /// HTTP/2 connections that were ended because of too many frames that ask for nothing.
    pub http2_floods: Count,
    /// HTTP/3 connections.
    pub http3_connections: Count,
    /// HTTP/3 streams with a request.
    pub http3_streams: Count,
    /// Requests in early data of HTTP/3 that were answered as others are.
    pub http3_early_requests: Count,
    /// HTTP/3 connections that were ended because of too much that asks for nothing.
    pub http3_floods: Count,
    /// Bytes that are not an acceptable request.
    pub(crate) rejects: [Count; Reject::KINDS],
}

/// Open connections by what they do.
#[derive(Debug, Default)]
pub struct OpenCounts {
    /// Connections that wait for a request.
    pub idle: Count,
    /// Connections with a request in progress.
    pub busy: Count,
    /// Connections that speak HTTP/2.
    pub http2: Count,
    /// Connections that speak HTTP/3.
    pub http3: Count,
}

/// Connections that were ended because their time was over.
#[derive(Debug, Default)]
pub struct TimeoutCounts {
    /// Connections without a request, before their first.
    pub first_request: Count,
    /// Connections without a request, after a response.
    pub keep_alive: Count,
    /// Connections whose client sent or read too slowly.
    pub slow: Count,
    /// Connections that speak HTTP/2.
    pub http2: Count,
    /// Connections that speak HTTP/3, and their requests whose head was too slow.
    pub http3: Count,
}

/// TLS handshakes.
#[derive(Debug, Default)]
pub struct HandshakeCounts {
    /// Full handshakes with TLS 1.2.
    pub tls12: Count,
    /// Resumed sessions with TLS 1.2.
    pub tls12_resumed: Count,
    /// Full handshakes with TLS 1.3.
    pub tls13: Count,
    /// Resumed sessions with TLS 1.3.
    pub tls13_resumed: Count,
    /// Handshakes that failed, or took too long.
    pub failed: Count,
}

impl ConnectionCounters {
    /// Returns how many requests were refused before a route was searched, by reason.
    pub fn rejected(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        REJECTS.into_iter().zip(self.rejects.iter().map(Count::get))
    }

    pub(crate) fn count_reject(&self, reject: Reject) {
        if let Some(count) = self.rejects.get(reject.index()) {
            count.add();
        }
    }
}

impl HandshakeCounts {
    pub(crate) fn count(&self, is_tls13: bool, is_resumed: bool) {
        match (is_tls13, is_resumed) {
            (false, false) => &self.tls12,
            (false, true) => &self.tls12_resumed,
            (true, false) => &self.tls13,
            (true, true) => &self.tls13_resumed,
        }
        .add();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_of_a_refusal_is_counted_under_its_name() {
        let counters = ConnectionCounters::default();
        counters.count_reject(Reject::HeadTooLarge);
        counters.count_reject(Reject::Expectation);
        let counted: Vec<_> = counters.rejected().filter(|(_, count)| *count > 0).collect();
        assert_eq!(counted, [("head_too_large", 1), ("expectation", 1)]);
    }
}
