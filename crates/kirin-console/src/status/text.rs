//! The status of a running Kirin for people: one screen.
//!
//! It is made of the JSON that the running program has sent, which may be of another version.
//! Unknown keys are ignored, and what is missing is left out.

use std::io::IsTerminal;

use serde_json::Value;

use super::machines::names;
use super::trial;
use crate::colours;
use crate::table::TextTable;
use crate::units::{bytes, count, duration, latency, number_of, percent, plain};

/// The column in which the text of a block begins.
const COLUMN: usize = 14;

/// The most blocked networks that are shown.
const MAX_BLOCKS_SHOWN: usize = 5;

/// Returns the text for a status in JSON. There are colours if it goes to a terminal.
pub fn describe(json: &str) -> Result<String, String> {
    let status = serde_json::from_str(json)
        .map_err(|error| format!("what came is no answer of Kirin: {error}"))?;
    Ok(render(&status, Colours::of_standard_output()))
}

/// Whether the text has colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colours {
    /// It goes to a terminal.
    On,
    /// It goes to a file or a program, or the user wants none (`NO_COLOR`).
    Off,
}

impl Colours {
    /// Returns whether standard output is a terminal with colours.
    pub fn of_standard_output() -> Self {
        match std::io::stdout().is_terminal() && colours::are_wanted() {
            true => Self::On,
            false => Self::Off,
        }
    }

    /// Returns `text` in a style of SGR (ECMA-48).
    pub fn paint(self, style: &str, text: &str) -> String {
        match self {
            Self::On => format!("\x1b[{style}m{text}\x1b[0m"),
            Self::Off => text.to_owned(),
        }
    }
}

/// The style of headings.
pub const BOLD: &str = "1";

/// The style of warnings.
pub const RED: &str = "1;31";

/// Returns the text for a status.
pub fn render(status: &Value, colours: Colours) -> String {
    let mut text = String::new();
    text.push_str(&colours.paint(BOLD, &title(status)));
    text.push('\n');
    let serving = &status["serving"];
    for key in ["config", "target", "program"] {
        if let Some(name) = serving[key].as_str() {
            block(&mut text, "serves", &plain(name));
        }
    }
    let urls = serving["urls"].as_array().map(Vec::as_slice).unwrap_or_default();
    for (index, url) in urls.iter().filter_map(Value::as_str).enumerate() {
        block(&mut text, if index == 0 { "listens on" } else { "" }, &plain(url));
    }
    let warnings = warnings(status);
    if !warnings.is_empty() {
        text.push('\n');
    }
    for warning in warnings {
        text.push_str(&colours.paint(RED, &format!("! {warning}")));
        text.push('\n');
    }
    text.push('\n');
    clients(&mut text, status);
    store(&mut text, &status["store"]);
    origin(&mut text, &status["origin"]);
    others(&mut text, &status["machines"]);
    cache(&mut text, &status["cache"]);
    let add_table = |text: &mut String, table: TextTable| {
        if !table.is_empty() {
            text.push('\n');
            text.push_str(&table.text(|heading| colours.paint(BOLD, heading)));
        }
    };
    add_table(&mut text, apps(&status["apps"]));
    shared_memory(&mut text, &status["apps"]);
    add_table(&mut text, trial::sides(&status["apps"]));
    text.push_str(&trial::ends(&status["apps"]));
    add_table(&mut text, upstreams(&status["upstreams"]));
    queues(&mut text, &status["upstreams"]);
    text
}

fn block(text: &mut String, name: &str, line: &str) {
    text.push_str(&format!("{name:COLUMN$}{line}\n"));
}

/// Adds a block of several lines, without those that are empty.
fn blocks(text: &mut String, name: &str, lines: &[String]) {
    for (index, line) in lines.iter().filter(|line| !line.is_empty()).enumerate() {
        block(text, if index == 0 { name } else { "" }, line);
    }
}

fn title(status: &Value) -> String {
    let parts = [
        status["version"].as_str().map(|version| format!("kirin {}", plain(version))),
        number(status, "pid").map(|pid| format!("process {pid}")),
        number(status, "uptime_seconds").map(|seconds| format!("up {}", duration(seconds))),
        status["program"]
            .get("serving_seconds")
            .filter(|seconds| seconds.is_null())
            .map(|_| "does not serve yet".to_owned()),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Returns a count, if the program has sent it.
pub fn number(value: &Value, key: &str) -> Option<u64> {
    value[key].as_u64()
}

/// Returns a count, or zero if the program did not send it.
pub fn or_zero(value: &Value, key: &str) -> u64 {
    number(value, key).unwrap_or_default()
}

/// Returns `COUNT WORDS` if there is such a count.
fn counted(value: &Value, key: &str, words: &str) -> Option<String> {
    Some(format!("{} {words}", count(number(value, key)?)))
}

fn joined<const N: usize>(parts: [Option<String>; N]) -> String {
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Returns what an operator should look at first.
fn warnings(status: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for app in status["apps"].as_array().into_iter().flatten() {
        let name = plain(app["name"].as_str().unwrap_or("?"));
        match app["state"].as_str() {
            Some("ready") | None => {}
            Some("failed") => found.push(format!(
                "application {name} has failed: its log says why; HUP loads it again"
            )),
            Some(state) => found.push(format!("application {name} is {}", plain(state))),
        }
        let waiting = or_zero(app, "waiting_requests");
        if let (Some(wanted), Some(configured)) =
            (number(app, "wanted_workers"), number(app, "configured_workers"))
            && wanted != configured
        {
            found.push(format!(
                "application {name}: {} by an operator, configured are {configured}",
                number_of(wanted, "worker")
            ));
        }
        if waiting > 0 && number(app, "idle_workers") == Some(0) {
            found.push(format!(
                "application {name}: all workers are busy, and {} wait",
                number_of(waiting, "request")
            ));
        }
    }
    for (name, upstream) in status["upstreams"].as_object().into_iter().flatten() {
        for server in upstream["servers"].as_array().into_iter().flatten() {
            let address = plain(server["server"].as_str().unwrap_or("?"));
            let name = plain(name);
            match server["availability"].as_str() {
                Some("available") | None => {}
                Some("ejected") => {
                    let again = number(server, "ejected_ms").map_or(String::new(), |left| {
                        format!(", it is tried again in {}", duration(left.div_ceil(1000)))
                    });
                    found.push(format!(
                        "upstream {name}: {address} is ejected after failures{again}"
                    ));
                }
                Some(state @ ("draining" | "disabled")) => {
                    found.push(format!("upstream {name}: {address} is {state} by an operator"));
                }
                Some(state) => {
                    found.push(format!("upstream {name}: {address} is {}", plain(state)))
                }
            }
            if let (Some(weight), Some(configured)) =
                (number(server, "weight"), number(server, "configured_weight"))
            {
                found.push(format!(
                    "upstream {name}: {address} has the weight {weight} by an operator, \
                     configured is {configured}"
                ));
            }
        }
    }
    if status["origin"]["state"] == "away" {
        let address = plain(status["origin"]["address"].as_str().unwrap_or("?"));
        let reason = plain(status["origin"]["reason"].as_str().unwrap_or("no reason is known"));
        found.push(format!("the origin {address} is away: {reason}"));
    }
    found.extend(program_warnings(&status["program"]));
    for maintenance in status["maintenance"].as_array().into_iter().flatten() {
        let held = plain(maintenance["held"].as_str().unwrap_or("?"));
        found.push(format!("{held}: in maintenance by an operator, clients get 503"));
    }
    found.extend(blocked(&status["blocked"]));
    for (value, key, words) in [
        (status, "panics", "errors in Kirin itself (panics) since the start: see the log"),
        (
            status,
            "log_lines_lost",
            "lines of the log were lost: its reader is too slow or has gone",
        ),
        (
            status,
            "access_log_lines_lost",
            "lines of access logs were lost: the disk is full or too slow",
        ),
        (
            &status["clients"],
            "connections_cut",
            "connections were cut, because their addresses held most of limits.client_memory or limits.client_disk",
        ),
        (&status["clients"], "memory_refused", "times there was no room in limits.client_memory"),
        (&status["clients"], "disk_refused", "times there was no room in limits.client_disk"),
    ] {
        if or_zero(value, key) > 0 {
            found.extend(counted(value, key, words));
        }
    }
    found
}

/// Returns lines about the program's file and the other program of an upgrade.
fn program_warnings(program: &Value) -> Vec<String> {
    let mut found = Vec::new();
    if program["is_replaced"] == true {
        let file = plain(program["file"].as_str().unwrap_or("?"));
        found.push(format!("{file} is another program now: `kirin upgrade` starts it"));
    }
    if let Some(pid) = number(&program["successor"], "pid") {
        let successor = &program["successor"];
        let step = plain(successor["step"].as_str().unwrap_or("starts"));
        let seconds = duration(or_zero(successor, "seconds"));
        found.push(format!("an upgrade is going on for {seconds}: process {pid} {step}"));
    }
    if let Some(reason) = program["upgrade_failure"]["reason"].as_str() {
        let ago = duration(or_zero(&program["upgrade_failure"], "seconds_ago"));
        found.push(format!("the upgrade {ago} ago has failed: {}", plain(reason)));
    }
    if let Some(pid) = number(&program["predecessor"], "pid") {
        let has = match number(&program["predecessor"], "connections") {
            Some(connections) => number_of(connections, "connection"),
            None => "what it has begun".to_owned(),
        };
        found.push(format!("the program before this one, process {pid}, finishes {has}"));
    }
    found
}

/// Returns a line about the networks that are blocked.
fn blocked(blocks: &Value) -> Option<String> {
    let blocks = blocks.as_array().filter(|blocks| !blocks.is_empty())?;
    let shown = blocks.iter().take(MAX_BLOCKS_SHOWN).map(|block| {
        let network = plain(block["network"].as_str().unwrap_or("?"));
        let machines = if block["on_all_machines"] == true { " on all machines" } else { "" };
        format!("{network} for {}{machines}", duration(or_zero(block, "seconds_left")))
    });
    let mut shown: Vec<String> = shown.collect();
    if blocks.len() > MAX_BLOCKS_SHOWN {
        shown.push(format!("and {} more", blocks.len() - MAX_BLOCKS_SHOWN));
    }
    Some(format!("blocked by an operator: {}", shown.join(", ")))
}

fn clients(text: &mut String, status: &Value) {
    let connections = number(status, "connections").map(|open| number_of(open, "connection"));
    let clients = &status["clients"];
    let held = |name: &str, key: &str| {
        let held = bytes(number(clients, &format!("{key}_bytes"))?);
        let limit = number(clients, &format!("{key}_limit_bytes"));
        Some(match limit {
            Some(limit) => format!("{held} of {} {name}", bytes(limit)),
            None => format!("{held} {name}"),
        })
    };
    let line = joined([connections, held("memory", "memory"), held("disk", "disk")]);
    blocks(text, "clients", &[line]);
}

fn store(text: &mut String, store: &Value) {
    let fill = number(store, "bytes").map(|held| match number(store, "limit_bytes") {
        Some(limit) => {
            format!("{} of {} ({})", bytes(held), bytes(limit), percent(held, limit))
        }
        None => bytes(held),
    });
    let (hits, misses) = (number(store, "get_hits"), number(store, "get_misses"));
    let reads = hits.zip(misses).map(|(hits, misses)| match hits + misses {
        0 => "not read yet".into(),
        reads => format!("{} of {} reads found an item", percent(hits, reads), count(reads)),
    });
    let lines = [
        joined([counted(store, "items", "items"), fill, counted(store, "evictions", "evictions")]),
        joined([reads, counted(store, "sets", "writes"), counted(store, "deletes", "deletes")]),
    ];
    blocks(text, "store", &lines);
}

/// Adds the origin of the store, if there is one.
fn origin(text: &mut String, origin: &Value) {
    let text_of = |key: &str| origin[key].as_str().map(plain);
    let server = [text_of("server"), text_of("version")];
    let server = server.into_iter().flatten().collect::<Vec<_>>().join(" ");
    let state = text_of("state").map(|state| match server.as_str() {
        "" => state,
        server => format!("{state} to {server}"),
    });
    let lines = [
        joined([text_of("address"), state]),
        joined([
            counted(origin, "reads", "reads"),
            counted(origin, "read_hits", "of them found an item"),
            counted(origin, "writes", "writes"),
            counted(origin, "purges", "purges"),
        ]),
        joined([
            counted(origin, "invalidations", "invalidations"),
            counted(origin, "timeouts", "timeouts"),
            counted(origin, "failures", "failures"),
        ]),
    ];
    blocks(text, "origin", &lines);
}

/// Adds the machines with the same origin, if they are known.
fn others(text: &mut String, machines: &Value) {
    let Some(all) = machines.as_array() else { return };
    let shown = names(all.iter().filter_map(Value::as_str).map(plain));
    blocks(text, "machines", &[format!("{} ({shown})", count(all.len() as u64))]);
}

fn cache(text: &mut String, cache: &Value) {
    if !cache.is_object() {
        return;
    }
    let sum = |keys: &[&str]| keys.iter().map(|key| or_zero(cache, key)).sum::<u64>();
    let answered = sum(&["hits", "stale_hits", "collapsed", "stale_if_error"]);
    let asked = sum(&["misses", "passed"]) + or_zero(cache, "not_modified");
    // A failed revalidation is counted as answered.
    let revalidated = or_zero(cache, "validations").saturating_sub(or_zero(cache, "not_modified"));
    let all = answered + asked + revalidated.saturating_sub(or_zero(cache, "stale_if_error"));
    if all + or_zero(cache, "bypassed") == 0 {
        return blocks(text, "cache", &["not used yet".into()]);
    }
    let share = match all {
        0 => None,
        all => Some(format!(
            "{} of {} answered from it",
            percent(answered, all),
            number_of(all, "request")
        )),
    };
    let lines = [
        joined([share, counted(cache, "bypassed", "past it")]),
        joined([
            counted(cache, "stored", "responses stored"),
            counted(cache, "not_stored", "not stored"),
            counted(cache, "validations", "revalidated"),
        ]),
    ];
    blocks(text, "cache", &lines);
}

/// Returns the cell of a count, which is empty if the program did not send it.
pub fn cell(value: &Value, key: &str) -> String {
    number(value, key).map(count).unwrap_or_default()
}

fn apps(apps: &Value) -> TextTable {
    let mut table = TextTable::new(&[
        "application",
        "state",
        "busy",
        "idle",
        "waiting",
        "requests",
        "refused",
        "failed",
        "overdue",
        "workers ended",
        "hand-over",
    ]);
    for app in apps.as_array().into_iter().flatten() {
        let counters = &app["counters"];
        let workers = app["workers"].as_array().map(|workers| workers.len() as u64);
        let busy =
            workers.zip(number(app, "idle_workers")).map(|(all, idle)| all.saturating_sub(idle));
        let refused = or_zero(counters, "refused_full") + or_zero(counters, "refused_waited");
        table.row(vec![
            plain(app["name"].as_str().unwrap_or("?")),
            plain(app["state"].as_str().unwrap_or_default()),
            busy.map(count).unwrap_or_default(),
            cell(app, "idle_workers"),
            cell(app, "waiting_requests"),
            cell(counters, "requests"),
            count(refused),
            cell(counters, "failed"),
            cell(counters, "overdue"),
            cell(counters, "workers_ended"),
            hand_over(workers.unwrap_or_default(), &app["rings"]),
        ]);
    }
    table
}

/// Returns how the workers of an application get their requests.
fn hand_over(workers: u64, rings: &Value) -> String {
    let rings = rings.as_array().into_iter().flatten();
    let by_ring: u64 = rings.map(|ring| or_zero(ring, "workers")).sum();
    match (by_ring, workers.saturating_sub(by_ring)) {
        (0, 0) => String::new(),
        (0, _) => "socket".into(),
        (_, 0) => "ring".into(),
        (by_ring, all_others) => format!("{by_ring} ring, {all_others} socket"),
    }
}

/// Writes a line for the memory that each application shares with its workers.
fn shared_memory(text: &mut String, apps: &Value) {
    for app in apps.as_array().into_iter().flatten() {
        let rings = app["rings"].as_array().into_iter().flatten();
        let sum = |key| rings.clone().map(|ring| or_zero(ring, key)).sum::<u64>();
        if sum("workers") > 0 {
            let name = plain(app["name"].as_str().unwrap_or("?"));
            let (memory, most) = (bytes(sum("memory_bytes")), bytes(sum("max_memory_bytes")));
            let (requests, slots) = (count(sum("requests")), count(sum("slots")));
            let line = format!("ring of {name}: {memory} of {most}, {requests} of {slots} slots\n");
            text.push_str(&line);
        }
    }
}

fn upstreams(upstreams: &Value) -> TextTable {
    let mut table = TextTable::new(&[
        "upstream",
        "server",
        "state",
        "in flight",
        "latency",
        "requests",
        "failures",
    ]);
    for (name, upstream) in upstreams.as_object().into_iter().flatten() {
        for (index, server) in upstream["servers"].as_array().into_iter().flatten().enumerate() {
            let in_flight = match number(server, "max_in_flight") {
                Some(limit) => format!("{} of {}", cell(server, "in_flight"), count(limit)),
                None => cell(server, "in_flight"),
            };
            // A server without requests has no latency.
            let latency = server["latency_ms"].as_f64().filter(|_| or_zero(server, "requests") > 0);
            table.row(vec![
                if index == 0 { plain(name) } else { String::new() },
                plain(server["server"].as_str().unwrap_or("?")),
                plain(server["availability"].as_str().unwrap_or_default()),
                in_flight,
                latency.map(self::latency).unwrap_or_default(),
                cell(server, "requests"),
                cell(server, "failures"),
            ]);
        }
    }
    table
}

/// Adds the queues of upstreams at which requests wait, or were refused.
fn queues(text: &mut String, upstreams: &Value) {
    for (name, upstream) in upstreams.as_object().into_iter().flatten() {
        let refused = or_zero(upstream, "queue_full") + or_zero(upstream, "queue_timeouts");
        let (queued, waited) = (or_zero(upstream, "queued"), or_zero(upstream, "waited"));
        let retries = or_zero(upstream, "retries");
        if queued + waited + refused + retries == 0 {
            continue;
        }
        let wait = |key: &str| upstream[key].as_f64().filter(|_| waited > 0).map(latency);
        let line = joined([
            Some(format!("{} waiting", number_of(queued, "request"))),
            Some(format!("{} waited", count(waited))),
            wait("wait_ms_average").map(|wait| format!("{wait} on average")),
            wait("wait_ms_longest").map(|wait| format!("{wait} at most")),
            Some(format!("{} refused", count(refused))),
            Some(format!("{} retried", count(retries))),
        ]);
        text.push_str(&format!("queue of {}: {line}\n", plain(name)));
    }
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;
