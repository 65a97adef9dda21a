//! The names of all metrics. `docs/metrics.md` is made from this list.
//!
//! The values of labels come from the configuration, or are words of the program. No value comes
//! from a request, so clients cannot make series.

use kirin_metrics::{Family, MetricKind};

/// The metrics of one part of the program, in the documentation.
#[cfg(test)]
pub struct Group {
    /// The heading.
    pub title: &'static str,
    /// The metrics.
    pub families: &'static [&'static Family],
}

macro_rules! families {
    ($($title:literal { $(
        $constant:ident = $kind:ident $name:literal [$($label:literal),*] $help:literal;
    )+ })+) => {
        $($(
            #[doc = $help]
            pub const $constant: Family = Family {
                name: $name,
                kind: MetricKind::$kind,
                labels: &[$($label),*],
                help: $help,
            };
        )+)+

        /// All metrics.
        #[cfg(test)]
        pub const GROUPS: &[Group] = &[
            $(Group { title: $title, families: &[$(&$constant),+] }),+
        ];
    };
}

families! {
    "Requests" {
        REQUESTS = Counter "kirin_requests" ["site", "route", "place", "class"]
            "Requests whose responses have ended.";
        REQUEST_DURATION = Histogram "kirin_request_duration_seconds"
            ["site", "route", "place", "class"]
            "Time from the head of a request to the end of its response.";
        REQUEST_BYTES = Counter "kirin_request_body_bytes" ["site", "route", "place", "class"]
            "Bytes of request bodies that were received.";
        RESPONSE_BYTES = Counter "kirin_response_body_bytes" ["site", "route", "place", "class"]
            "Bytes of response bodies that were sent.";
        RESPONSES_CUT = Counter "kirin_responses_cut" ["site", "route"]
            "Responses that clients did not get completely.";
        REQUESTS_REJECTED = Counter "kirin_requests_rejected" ["listener", "reason"]
            "Requests that were refused before a route was searched.";
        RATE_LIMITED = Counter "kirin_requests_rate_limited" []
            "Requests that were refused by a rate limit of a route.";
        IN_FLIGHT_LIMITED = Counter "kirin_requests_in_flight_limited" []
            "Requests that were refused because too many were in progress (`in_flight_limit`).";
        LIMITED_IN_DRY_RUN = Counter "kirin_requests_limited_in_dry_run" ["limit"]
            "Requests that a limit in a dry run would have refused.";
    }
    "Connections" {
        CONNECTIONS = Gauge "kirin_connections" ["listener", "state"]
            "Open connections, as of the last second.";
        CONNECTIONS_OPEN = Gauge "kirin_connections_open" []
            "Open connections of all listeners.";
        CONNECTIONS_LIMIT = Gauge "kirin_connections_limit" []
            "The most connections of all listeners.";
        CONNECTIONS_ACCEPTED = Counter "kirin_connections_accepted" ["listener"]
            "Connections that were accepted.";
        CONNECTIONS_REFUSED = Counter "kirin_connections_refused" ["listener", "limit"]
            "Connections that were closed at once because of a limit, or of a block by an operator.";
        ACCEPT_PAUSES = Counter "kirin_accept_pauses" ["listener", "limit"]
            "Pauses of a tenth of a second in which a listener accepts no connection.";
        CONNECTIONS_TIMED_OUT = Counter "kirin_connections_timed_out" ["listener", "reason"]
            "Connections that were ended because the client was idle or too slow.";
        CONNECTIONS_CUT = Counter "kirin_connections_cut" ["listener"]
            "Connections of the client that held most bytes, cut to make room for others.";
        CLIENT_BYTES = Gauge "kirin_client_held_bytes" ["resource"]
            "Bytes that are held for clients, in memory and in temporary files.";
        CLIENT_BYTES_LIMIT = Gauge "kirin_client_held_limit_bytes" ["resource"]
            "The most bytes that are held for clients.";
        CLIENT_BYTES_REFUSED = Counter "kirin_client_held_refused" ["resource"]
            "Times that there was no room for the bytes of a client.";
        HTTP2_CONNECTIONS = Counter "kirin_http2_connections" ["listener"]
            "Connections that spoke HTTP/2.";
        HTTP2_STREAMS = Counter "kirin_http2_streams" ["listener"]
            "Streams of HTTP/2, each with one request.";
        HTTP2_ENDED = Counter "kirin_http2_connections_ended" ["listener", "reason"]
            "HTTP/2 connections that were ended because their clients misused them.";
        HTTP3_CONNECTIONS = Counter "kirin_http3_connections" ["listener"]
            "Connections that spoke HTTP/3.";
        HTTP3_STREAMS = Counter "kirin_http3_streams" ["listener"]
            "Streams of HTTP/3, each with one request.";
        HTTP3_EARLY_REQUESTS = Counter "kirin_http3_early_requests" ["listener"]
            "Requests in early data of HTTP/3, without those that were refused.";
        HTTP3_ENDED = Counter "kirin_http3_connections_ended" ["listener", "reason"]
            "HTTP/3 connections that were ended because their clients misused them.";
    }
    "TLS" {
        TLS_HANDSHAKES = Counter "kirin_tls_handshakes" ["listener", "version", "resumed"]
            "TLS handshakes that succeeded.";
        TLS_FAILED = Counter "kirin_tls_handshakes_failed" ["listener"]
            "TLS handshakes that failed.";
        CERTIFICATE_EXPIRY = Gauge "kirin_certificate_expiry_timestamp_seconds" ["listener", "name"]
            "When the certificate for a name expires, in seconds since 1970.";
    }
    "Store and cache" {
        STORE_ITEMS = Gauge "kirin_store_items" []
            "Items in the store.";
        STORE_BYTES = Gauge "kirin_store_used_bytes" []
            "Bytes that the store takes.";
        STORE_LIMIT = Gauge "kirin_store_limit_bytes" []
            "The most bytes that the store may take.";
        STORE_TAGS = Gauge "kirin_store_tags" []
            "Tags that items carry.";
        STORE_GETS = Counter "kirin_store_gets" ["result"]
            "Lookups of items by routes, pages and memcached clients.";
        STORE_SETS = Counter "kirin_store_sets" []
            "Commands that store an item.";
        STORE_DELETES = Counter "kirin_store_deletes" ["result"]
            "Commands that delete an item.";
        STORE_EVICTIONS = Counter "kirin_store_evictions" []
            "Items that were removed to make room while they were good.";
        STORE_EXPIRED = Counter "kirin_store_expired" ["when"]
            "Expired and invalidated items that were removed, by the sweep or to make room.";
        STORE_REFUSED = Counter "kirin_store_refused" ["reason"]
            "Items that could not be stored.";
        CACHE_EVENTS = Counter "kirin_cache_events" ["event"]
            "What the caches of routes did; docs/cache.md explains the events.";
        PURGES = Counter "kirin_purges" []
            "Purges by the admin listener, by PURGE requests and by Kirin-Purge.";
        PURGED = Counter "kirin_purged_names" ["kind"]
            "Names that purges have found: keys, prefixes and tags.";
    }
    "Origin of the store" {
        ORIGIN_CONNECTED = Gauge "kirin_origin_connected" []
            "Whether the origin is connected. These metrics are there only with `store.origin`.";
        ORIGIN_MACHINES = Gauge "kirin_origin_machines" []
            "Machines with the same origin, if it answers.";
        ORIGIN_CONNECTIONS = Counter "kirin_origin_connections" []
            "Connections to the origin that were opened.";
        ORIGIN_READS = Counter "kirin_origin_reads" []
            "Items that the origin was asked for, because there was no copy.";
        ORIGIN_READ_HITS = Counter "kirin_origin_read_hits" []
            "Items that the origin had when it was asked.";
        ORIGIN_COPIES_REFUSED = Counter "kirin_origin_copies_refused" []
            "Copies that were not kept, because an invalidation crossed them or nothing proved them.";
        ORIGIN_WRITES = Counter "kirin_origin_writes" []
            "Items that were written or removed on the origin.";
        ORIGIN_WRITE_CONFLICTS = Counter "kirin_origin_write_conflicts" []
            "Writes that began again, because another writer was faster.";
        ORIGIN_PURGES = Counter "kirin_origin_purges" []
            "Purges of keys, tags and prefixes on the origin.";
        ORIGIN_INVALIDATIONS = Counter "kirin_origin_invalidations" []
            "Names that the origin has reported as changed.";
        ORIGIN_TIMEOUTS = Counter "kirin_origin_timeouts" []
            "Commands to the origin without an answer in time.";
        ORIGIN_FAILURES = Counter "kirin_origin_failures" []
            "Other commands to the origin that failed.";
    }
    "Applications" {
        APP_UP = Gauge "kirin_app_up" ["app"]
            "Whether the application is ready.";
        APP_FAILED = Gauge "kirin_app_failed" ["app"]
            "Whether the application has failed, so that Kirin does not start it again.";
        APP_WORKERS = Gauge "kirin_app_workers" ["app", "state"]
            "Workers with a connection.";
        APP_WAITING = Gauge "kirin_app_waiting_requests" ["app"]
            "Requests that wait for a worker now.";
        APP_QUEUE_WAIT = Histogram "kirin_app_queue_wait_seconds" ["app"]
            "Time that requests waited for a worker. Requests that found an idle one are not \
            counted.";
        APP_TIME = Histogram "kirin_app_request_seconds" ["app"]
            "Time that a worker had a request, with the included parts of pages.";
        APP_REQUESTS = Counter "kirin_app_requests" ["app"]
            "Requests to the application.";
        APP_QUEUED = Counter "kirin_app_requests_queued" ["app"]
            "Requests that had to wait for a worker.";
        APP_ERRORS = Counter "kirin_app_requests_failed" ["app", "reason"]
            "Requests that got no response of a worker.";
        APP_RETRIES = Counter "kirin_app_requests_retried" ["app"]
            "Requests that were given to another worker because the first was lost.";
        APP_WORKERS_ENDED = Counter "kirin_app_workers_ended" ["app"]
            "Workers that have ended, for any reason.";
        APP_WORKER_REPLACEMENTS = Counter "kirin_app_worker_replacements" ["app", "reason"]
            "Workers that were replaced, by reason.";
        APP_PARENT_RESTARTS = Counter "kirin_app_parent_restarts" ["app"]
            "App parents that ended and were started again.";
        APP_RELOADS = Counter "kirin_app_reloads" ["app", "result"]
            "Reloads of the application. `given_up` counts new code that did worse on trial.";
        APP_TRIAL = Gauge "kirin_app_trial" ["app"]
            "Whether new code of the application is on trial now.";
        APP_TRIAL_REQUESTS = Gauge "kirin_app_trial_requests" ["app", "generation", "outcome"]
            "Requests during the present or last trial, to the new and to the old code.";
        APP_TRIAL_VISITORS = Gauge "kirin_app_trial_visitors" ["app", "generation", "response"]
            "Visitors with a failed or a slow response during the present or last trial.";
        APP_TRIAL_MEMORY = Gauge "kirin_app_trial_worker_resident_memory_bytes" ["app", "generation"]
            "Mean resident memory of a worker during the present or last trial.";
        APP_SPOOL_FAILED = Counter "kirin_app_spool_failed" ["app"]
            "Bodies that could not be written to a temporary file.";
        APP_WORKER_AGE = Gauge "kirin_app_worker_age_seconds" ["app", "worker"]
            "The ages of the oldest and the youngest worker.";
        APP_MEMORY = Gauge "kirin_app_workers_resident_memory_bytes" ["app"]
            "Resident memory of all workers. Pages that they share count for each.";
        APP_MEMORY_MAX = Gauge "kirin_app_worker_resident_memory_max_bytes" ["app"]
            "Resident memory of the largest worker.";
    }
    "Upstreams" {
        SERVER_STATE = Gauge "kirin_upstream_server_state" ["upstream", "server", "state"]
            "1 for the present state of the server, 0 for the others.";
        SERVER_IN_FLIGHT = Gauge "kirin_upstream_server_in_flight" ["upstream", "server"]
            "Requests that the server has now.";
        SERVER_REQUESTS = Counter "kirin_upstream_server_requests" ["upstream", "server"]
            "Requests to the server.";
        SERVER_FAILURES = Counter "kirin_upstream_server_failures" ["upstream", "server"]
            "Requests that the server failed.";
        SERVER_EJECTIONS = Counter "kirin_upstream_server_ejections" ["upstream", "server"]
            "Times that the server was ejected.";
        SERVER_LATENCY = Gauge "kirin_upstream_server_latency_seconds" ["upstream", "server"]
            "Time to the beginning of a response, as a moving average.";
        UPSTREAM_TIME = Histogram "kirin_upstream_request_seconds" ["upstream"]
            "Time that a server had a request. Each attempt counts.";
        UPSTREAM_RETRIES = Counter "kirin_upstream_retries" ["upstream"]
            "Requests that were sent to another server.";
        UPSTREAM_WAITING = Gauge "kirin_upstream_waiting_requests" ["upstream"]
            "Requests that wait for a server now.";
        UPSTREAM_QUEUE_WAIT = Histogram "kirin_upstream_queue_wait_seconds" ["upstream"]
            "Time that requests waited for a server. Requests that found one at once are not \
            counted.";
        UPSTREAM_REFUSED = Counter "kirin_upstream_queue_refused" ["upstream", "reason"]
            "Requests that left the queue without a server.";
    }
    "Mirrors" {
        MIRROR_COPIES = Counter "kirin_mirror_copies" ["site", "route", "result"]
            "Copies of requests that a mirror got, by how its answers compare with those of the \
            place.";
        MIRROR_SKIPPED = Counter "kirin_mirror_copies_skipped" ["site", "route", "reason"]
            "Requests that were chosen for a mirror and not sent to it.";
        MIRROR_IN_FLIGHT = Gauge "kirin_mirror_in_flight" ["site", "route"]
            "Copies that wait for the answer of a mirror now.";
        MIRROR_HELD = Gauge "kirin_mirror_held_bytes" ["site", "route"]
            "Memory that copies take now.";
    }
    "CGI programs" {
        CGI_RUNNING = Gauge "kirin_cgi_running" ["site", "route"]
            "Programs of the route that run now.";
        CGI_WAITING = Gauge "kirin_cgi_waiting_requests" ["site", "route"]
            "Requests that wait for a program to end now.";
        CGI_REQUESTS = Counter "kirin_cgi_requests" ["site", "route"]
            "Requests for which a program was started.";
        CGI_FAILURES = Counter "kirin_cgi_failures" ["site", "route"]
            "Requests that got no complete response from their program.";
        CGI_REFUSED = Counter "kirin_cgi_queue_refused" ["site", "route", "reason"]
            "Requests that left the queue before a program was started.";
    }
    "Program" {
        BUILD = Info "kirin_build" ["version"]
            "The version of Kirin.";
        PANICS = Counter "kirin_panics" []
            "Panics in Kirin that ended a task.";
        LOG_LINES_LOST = Counter "kirin_log_lines_lost" ["log"]
            "Log lines that could not be written: the disk is full, or the reader is stuck.";
        RELOADS = Counter "kirin_reloads" ["result"]
            "Reloads of the configuration and its certificates: `failed` ones have changed nothing.";
        UPGRADES = Counter "kirin_upgrades" ["result"]
            "Upgrades: `ok` is 1 in a program that took over from another, `failed` counts \
            attempts to hand over.";
        START_TIME = Gauge "process_start_time_seconds" []
            "When the program started, in seconds since 1970.";
        CPU = Counter "process_cpu_seconds" []
            "CPU time of the program, without its applications.";
        RESIDENT_MEMORY = Gauge "process_resident_memory_bytes" []
            "Resident memory of the program, without its applications.";
        OPEN_FDS = Gauge "process_open_fds" []
            "Open file descriptors of the program.";
        MAX_FDS = Gauge "process_max_fds" []
            "The limit on open file descriptors.";
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use super::*;

    fn table() -> String {
        let mut table = String::new();
        for group in GROUPS {
            let _ = writeln!(
                table,
                "\n### {}\n\n| metric | kind | labels | meaning |\n|---|---|---|---|",
                group.title
            );
            for family in group.families {
                let labels: Vec<_> =
                    family.labels.iter().map(|label| format!("`{label}`")).collect();
                let _ = writeln!(
                    table,
                    "| `{}{}` | {} | {} | {} |",
                    family.name,
                    family.suffix(),
                    family.kind.name(),
                    labels.join(", "),
                    family.help
                );
            }
        }
        table
    }

    // With `KIRIN_WRITE_DOCS=1` this writes the table, as `make docs` wants.
    #[test]
    fn the_documentation_lists_each_metric() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/metrics.md");
        let page = std::fs::read_to_string(path).unwrap();
        let (begin, end) = ("<!-- metrics -->\n", "<!-- end of metrics -->");
        let (before, rest) = page.split_once(begin).unwrap();
        let (written, after) = rest.split_once(end).unwrap();
        let table = table();
        if std::env::var_os("KIRIN_WRITE_DOCS").is_some() {
            std::fs::write(path, [before, begin, &table, "\n", end, after].concat()).unwrap();
        } else {
            assert!(
                written.trim() == table.trim(),
                "docs/metrics.md is old: `make docs` writes it"
            );
        }
    }

    #[test]
    fn names_follow_the_conventions_of_prometheus() {
        let families: Vec<_> = GROUPS.iter().flat_map(|group| group.families).collect();
        for (index, family) in families.iter().enumerate() {
            let name = family.name;
            assert!(
                families[..index].iter().all(|other| other.name != name),
                "{name} is there twice"
            );
            assert!(name.starts_with("kirin_") || name.starts_with("process_"), "{name}");
            assert!(!name.ends_with("_total") && !name.ends_with("_info"), "{name}");
            assert!(family.help.ends_with('.'), "{name}");
            if family.kind == MetricKind::Histogram {
                assert_eq!(family.unit(), Some("seconds"), "{name}");
            }
        }
    }
}
