//! The metrics of connections, of TLS, and of the bytes that are held for clients.

use std::collections::BTreeMap;
use std::sync::Arc;

use kirin_client_bytes::Resource;
use kirin_metrics::{Count, Exposition, Family};
use kirin_server::{ConnectionCounters, Tls};
use x509_parser::prelude::{FromDer, X509Certificate};

use super::Metrics;
use super::families as f;

/// A counter of a listener.
type ListenerCounter = fn(&ConnectionCounters) -> &Count;

/// A family, and its counters with the values of their labels.
type LabelledCounters = (&'static Family, &'static [(&'static [&'static str], ListenerCounter)]);

/// The metrics of each listener, with the values of their labels.
const BY_LISTENER: &[LabelledCounters] = &[
    (
        &f::CONNECTIONS,
        &[
            (&["idle"], |counters| &counters.open.idle),
            (&["busy"], |counters| &counters.open.busy),
            (&["http2"], |counters| &counters.open.http2),
            (&["http3"], |counters| &counters.open.http3),
        ],
    ),
    (&f::CONNECTIONS_ACCEPTED, &[(&[], |counters| &counters.accepted)]),
    (
        &f::CONNECTIONS_REFUSED,
        &[
            (&["connections_per_address"], |counters| &counters.refused_address),
            (&["blocked"], |counters| &counters.refused_blocked),
        ],
    ),
    (
        &f::ACCEPT_PAUSES,
        &[
            (&["connections"], |counters| &counters.paused_connections),
            (&["file_descriptors"], |counters| &counters.paused_descriptors),
        ],
    ),
    (
        &f::CONNECTIONS_TIMED_OUT,
        &[
            (&["first_request"], |counters| &counters.timed_out.first_request),
            (&["keep_alive"], |counters| &counters.timed_out.keep_alive),
            (&["slow"], |counters| &counters.timed_out.slow),
            (&["http2"], |counters| &counters.timed_out.http2),
            (&["http3"], |counters| &counters.timed_out.http3),
        ],
    ),
    (&f::CONNECTIONS_CUT, &[(&[], |counters| &counters.cut_heaviest)]),
    (&f::HTTP2_CONNECTIONS, &[(&[], |counters| &counters.http2_connections)]),
    (&f::HTTP2_STREAMS, &[(&[], |counters| &counters.http2_streams)]),
    (
        &f::HTTP2_ENDED,
        &[
            (&["resets"], |counters| &counters.http2_resets),
            (&["flood"], |counters| &counters.http2_floods),
        ],
    ),
    (&f::HTTP3_CONNECTIONS, &[(&[], |counters| &counters.http3_connections)]),
    (&f::HTTP3_STREAMS, &[(&[], |counters| &counters.http3_streams)]),
    (&f::HTTP3_EARLY_REQUESTS, &[(&[], |counters| &counters.http3_early_requests)]),
    (&f::HTTP3_ENDED, &[(&["flood"], |counters| &counters.http3_floods)]),
];

/// The metrics of each listener with TLS.
const BY_TLS_LISTENER: &[LabelledCounters] = &[
    (
        &f::TLS_HANDSHAKES,
        &[
            (&["1.2", "no"], |counters| &counters.handshakes.tls12),
            (&["1.2", "yes"], |counters| &counters.handshakes.tls12_resumed),
            (&["1.3", "no"], |counters| &counters.handshakes.tls13),
            (&["1.3", "yes"], |counters| &counters.handshakes.tls13_resumed),
        ],
    ),
    (&f::TLS_FAILED, &[(&[], |counters| &counters.handshakes.failed)]),
];

impl Metrics {
    /// Returns the counters of a listener on each event loop.
    pub(super) fn connections_of(
        &self,
        listener: usize,
    ) -> impl Iterator<Item = &Arc<ConnectionCounters>> {
        self.loops.iter().filter_map(move |of_loop| of_loop.connections.get(listener))
    }

    /// Writes the metrics of connections.
    pub(super) fn write_connections(&self, out: &mut Exposition) {
        self.write_by_listener(out, BY_LISTENER, |_| true);
        out.sample(&f::CONNECTIONS_OPEN, &[], self.connections.open());
        out.sample(&f::CONNECTIONS_LIMIT, &[], self.connections.limit());
        let resources = [("memory", Resource::Memory), ("disk", Resource::Disk)]
            .map(|(name, resource)| (name, self.accounts.all.observed(resource)));
        for (name, observed) in resources {
            out.sample(&f::CLIENT_BYTES, &[name], observed.held);
        }
        for (name, observed) in resources {
            out.sample(&f::CLIENT_BYTES_LIMIT, &[name], observed.limit);
        }
        for (name, observed) in resources {
            out.sample(&f::CLIENT_BYTES_REFUSED, &[name], observed.refused);
        }
    }

    /// Writes the metrics of TLS.
    pub(super) fn write_tls(&self, out: &mut Exposition) {
        self.write_by_listener(out, BY_TLS_LISTENER, Option::is_some);
        for (listener, tls) in &self.named.listeners {
            for (name, expiry) in tls.iter().flat_map(|tls| expiries(tls)) {
                out.sample(&f::CERTIFICATE_EXPIRY, &[listener, &name], expiry);
            }
        }
    }

    fn write_by_listener(
        &self,
        out: &mut Exposition,
        families: &[LabelledCounters],
        is_wanted: impl Fn(&Option<Arc<Tls>>) -> bool,
    ) {
        for (family, counters) in families {
            for (index, (listener, tls)) in self.named.listeners.iter().enumerate() {
                for (labels, counter) in counters.iter().filter(|_| is_wanted(tls)) {
                    let counts = self.connections_of(index).map(|of_loop| counter(of_loop).get());
                    let labels = [&[listener.as_str()], *labels].concat();
                    out.sample(family, &labels, counts.sum::<u64>());
                }
            }
        }
    }
}

/// Returns for each name when the first of its certificates expires, in Unix seconds.
fn expiries(tls: &Tls) -> BTreeMap<String, f64> {
    let mut expiries = BTreeMap::new();
    for certificate in tls.served_certificates() {
        let Ok((_, parsed)) = X509Certificate::from_der(&certificate.der) else { continue };
        let expiry = parsed.validity().not_after.timestamp() as f64;
        for name in certificate.names {
            let first = expiries.entry(name).or_insert(expiry);
            *first = expiry.min(*first);
        }
    }
    expiries
}
