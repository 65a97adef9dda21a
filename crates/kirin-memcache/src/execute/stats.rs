//! `stats`, with memcached's names and order.
//!
//! Tools such as `memcached-tool` and monitoring agents read some of these numbers by name. So the
//! names are kept, and numbers without a meaning in Kirin are left out. Kirin has no slab classes
//! either, but `memcached-tool display` needs them. So there is one class, number 1, with all
//! items.

use std::time::Duration;

use kirin_origin::{OriginState, StoreOrigin};
use rustix::process::getpid;

use super::{Executor, VERSION};
use crate::codec::StatsTopic;
use crate::counters::read;
use crate::output::OutputBuffer;
use crate::watch::RING_LIMIT_BYTES;

struct StatsTable<'a>(&'a mut OutputBuffer);

impl StatsTable<'_> {
    fn row(&mut self, name: &str, value: impl std::fmt::Display) {
        self.0.line(&format!("STAT {name} {value}"));
    }

    fn numbers<const N: usize>(&mut self, rows: [(&str, u64); N]) {
        for (name, value) in rows {
            self.row(name, value);
        }
    }
}

/// Shows what the origin of the store does.
fn stats_origin(origin: &StoreOrigin, table: &mut StatsTable<'_>) {
    let state = match origin.state() {
        OriginState::Connected { .. } => "connected",
        OriginState::Away { .. } => "away",
    };
    table.row("origin", &origin.config().address);
    table.row("origin_state", state);
    for (name, value) in origin.counters().values() {
        table.row(&format!("origin_{name}"), value);
    }
}

impl Executor {
    pub(super) fn stats(&self, topic: StatsTopic, output: &mut OutputBuffer) {
        let mut table = StatsTable(output);
        match topic {
            StatsTopic::General => self.stats_general(&mut table),
            StatsTopic::Items => self.stats_items(&mut table),
            StatsTopic::Slabs => self.stats_slabs(&mut table),
            StatsTopic::Settings => self.stats_settings(&mut table),
            StatsTopic::Sizes => {
                for (bytes, count) in self.store().item_sizes() {
                    table.row(&bytes.to_string(), count);
                }
            }
            // Connections belong to their loops, and there is no list of all of them.
            StatsTopic::Connections => {}
            StatsTopic::Reset => {
                self.store().reset_stats();
                self.server.reset_counters();
                self.server.watchers().reset_counts();
                self.server.prefixes().clear();
                return output.line("RESET");
            }
        }
        output.line("END");
    }

    fn stats_general(&self, table: &mut StatsTable<'_>) {
        let counters = self.server.total_counters();
        let stats = self.server.store_stats();
        let watchers = self.server.watchers().counts();
        let options = self.server.options();
        table.row("pid", getpid().as_raw_nonzero());
        table.row("uptime", self.server.uptime().as_secs());
        table.row("time", self.now().unix_seconds());
        table.row("version", VERSION);
        table.row("pointer_size", usize::BITS);
        let (user, system) = processor_time();
        for (name, time) in [("rusage_user", user), ("rusage_system", system)] {
            table.row(name, format_args!("{}.{:06}", time.as_secs(), time.subsec_micros()));
        }
        table.numbers([
            ("max_connections", options.connection_limit as u64),
            ("curr_connections", self.server.open_connections()),
            ("total_connections", read(&counters.total_connections)),
            ("rejected_connections", read(&counters.rejected_connections)),
            ("cmd_get", stats.get_hits + stats.get_misses),
            ("cmd_set", stats.cmd_set),
            ("cmd_flush", stats.cmd_flush),
            ("cmd_touch", stats.touch_hits + stats.touch_misses),
            ("cmd_meta", read(&counters.cmd_meta)),
            ("get_hits", stats.get_hits),
            ("get_misses", stats.get_misses),
            ("get_expired", stats.get_expired),
            ("get_flushed", stats.get_flushed),
            ("delete_misses", stats.delete_misses),
            ("delete_hits", stats.delete_hits),
            ("incr_misses", stats.incr_misses),
            ("incr_hits", stats.incr_hits),
            ("decr_misses", stats.decr_misses),
            ("decr_hits", stats.decr_hits),
            ("cas_misses", stats.cas_misses),
            ("cas_hits", stats.cas_hits),
            ("cas_badval", stats.cas_badval),
            ("touch_hits", stats.touch_hits),
            ("touch_misses", stats.touch_misses),
            ("store_too_large", stats.store_too_large + read(&counters.store_too_large)),
            ("store_no_memory", stats.store_no_memory),
            ("auth_cmds", 0),
            ("auth_errors", 0),
            ("idle_kicks", read(&counters.idle_kicks)),
            ("bytes_read", read(&counters.bytes_read)),
            ("bytes_written", read(&counters.bytes_written)),
            ("limit_maxbytes", stats.limit_maxbytes),
            ("accepting_conns", 1),
            ("listen_disabled_num", read(&counters.listen_disabled_num)),
            ("threads", options.description.threads as u64),
            ("conn_yields", read(&counters.conn_yields)),
            ("hash_bytes", stats.hash_bytes),
            ("log_watcher_skipped", watchers.skipped),
            ("log_watcher_sent", watchers.sent),
            ("log_watchers", watchers.watchers),
            ("bytes", stats.bytes),
            ("curr_items", stats.curr_items),
            ("total_items", stats.total_items),
            ("expired_unfetched", stats.expired_unfetched),
            ("evicted_unfetched", stats.evicted_unfetched),
            ("evictions", stats.evictions),
            ("reclaimed", stats.reclaimed),
            ("crawler_reclaimed", stats.swept_items),
            ("crawler_items_checked", stats.examined_items),
            ("curr_tags", stats.curr_tags),
            ("curr_prefixes", stats.curr_prefixes),
        ]);
        if let Some(origin) = &options.origin {
            stats_origin(origin, table);
        }
    }

    fn stats_items(&self, table: &mut StatsTable<'_>) {
        let Some(items) = self.store().item_stats(self.now()) else { return };
        let stats = self.store().stats();
        table.numbers([
            ("items:1:number", items.number),
            ("items:1:age", items.age_seconds),
            ("items:1:mem_requested", items.mem_requested),
            ("items:1:evicted", stats.evictions),
            ("items:1:evicted_nonzero", stats.evicted_nonzero),
            ("items:1:evicted_time", items.evicted_time_seconds),
            ("items:1:outofmemory", stats.store_no_memory),
            ("items:1:tailrepairs", 0),
            ("items:1:reclaimed", stats.reclaimed),
            ("items:1:expired_unfetched", stats.expired_unfetched),
            ("items:1:evicted_unfetched", stats.evicted_unfetched),
            ("items:1:crawler_reclaimed", stats.swept_items),
            ("items:1:crawler_items_checked", stats.examined_items),
        ]);
    }

    /// Shows one page of one class, cut into as many chunks as there are items.
    fn stats_slabs(&self, table: &mut StatsTable<'_>) {
        let stats = self.store().stats();
        if let Some(items) = self.store().item_stats(self.now()) {
            let chunks = items.number.max(1);
            table.numbers([
                ("1:chunk_size", stats.bytes / chunks),
                ("1:chunks_per_page", chunks),
                ("1:total_pages", 1),
                ("1:total_chunks", chunks),
                ("1:used_chunks", items.number),
                ("1:free_chunks", 0),
                ("1:free_chunks_end", 0),
                ("1:mem_requested", items.mem_requested),
                ("1:get_hits", stats.get_hits),
                ("1:cmd_set", stats.cmd_set),
                ("1:delete_hits", stats.delete_hits),
                ("1:incr_hits", stats.incr_hits),
                ("1:decr_hits", stats.decr_hits),
                ("1:cas_hits", stats.cas_hits),
                ("1:cas_badval", stats.cas_badval),
                ("1:touch_hits", stats.touch_hits),
            ]);
        }
        table.numbers([
            ("active_slabs", u64::from(stats.curr_items > 0)),
            ("total_malloced", stats.bytes),
        ]);
    }

    fn stats_settings(&self, table: &mut StatsTable<'_>) {
        let options = self.server.options();
        let description = &options.description;
        let yes = |condition| if condition { "yes" } else { "no" };
        table.row("maxbytes", self.store().memory_limit());
        table.row("maxconns", options.connection_limit);
        table.row("tcpport", description.tcp_port);
        table.row("udpport", 0);
        table.row("inter", description.interfaces.as_deref().unwrap_or("NULL"));
        table.row("verbosity", self.server.verbosity());
        table.row("evictions", if description.evict { "on" } else { "off" });
        table.row("domain_socket", description.unix_socket.as_deref().unwrap_or("NULL"));
        table.row("umask", format_args!("{:o}", description.unix_mode));
        table.row("shutdown_command", "no");
        table.row("num_threads", description.threads);
        table.row("stat_key_prefix", char::from(options.prefix_delimiter));
        table.row("detail_enabled", yes(self.observed.load().counts_prefixes()));
        table.row("cas_enabled", "yes");
        table.row("tcp_backlog", description.backlog);
        table.row("binding_protocol", "ascii");
        table.row("auth_enabled_sasl", "no");
        table.row("auth_enabled_ascii", "no");
        table.row("item_size_max", options.limits.item_size_bytes);
        table.row("maxconns_fast", "yes");
        table.row("flush_enabled", yes(options.limits.flush_enabled));
        table.row("dump_enabled", yes(options.limits.dump_enabled));
        table.row("watch_enabled", yes(options.limits.watch_enabled));
        table.row("idle_timeout", options.idle_timeout.map_or(0, |limit| limit.as_secs()));
        table.row("watcher_logbuf_size", RING_LIMIT_BYTES);
        table.row("stampede_guard", options.stampede_guard.map_or(0, |guard| guard.as_secs()));
    }
}

/// Returns the processor time of this process in user and in system mode. It is read from
/// `/proc/self/stat` (fields 14 and 15 of proc(5), in ticks of 10 ms).
fn processor_time() -> (Duration, Duration) {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The second field is the name in parentheses, which may contain any character.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    let mut ticks = fields.split_whitespace().skip(11).map(|ticks| ticks.parse().unwrap_or(0));
    let mut next = || Duration::from_millis(ticks.next().unwrap_or(0) * 10);
    (next(), next())
}
