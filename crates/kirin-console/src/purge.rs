//! `kirin purge`: asks the admin listener of a running Kirin, or its memcached port if there is no
//! admin listener.

use std::io::{self, BufRead, BufReader, Read, Write};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use clap::{ArgGroup, Args};
use kirin_cache::key::target_prefix;
use kirin_gateway::purge::command::{MAX_KEY_BYTES, Purge as Names, Purged};
use kirin_http::ListenAddress;
use serde::Deserialize;

use crate::print::print;
use crate::running::RunningKirin;
use crate::running::target::{CommandTarget, connect};
use crate::units::number_of;

/// The arguments of `kirin purge`.
#[derive(Args)]
#[command(group = ArgGroup::new("names").required(true).multiple(true)
    .args(["keys", "prefixes", "tags"]))]
pub struct PurgeArgs {
    /// Purge the item with this key; the key of a page is its path and query. Can be repeated, as
    /// the next two options
    #[arg(long = "key", short, value_name = "KEY")]
    keys: Vec<String>,
    /// Purge all items whose keys start with this prefix
    #[arg(long = "prefix", short, value_name = "PREFIX")]
    prefixes: Vec<String>,
    /// Purge all items with this tag
    #[arg(long = "tag", short, value_name = "TAG")]
    tags: Vec<String>,
    /// Purge items of this site only: its name, or one of its hosts
    #[arg(long, value_name = "NAME")]
    site: Option<String>,
    /// Only mark the items stale; Kirin serves them until they are renewed
    #[arg(long)]
    soft: bool,
    #[command(flatten)]
    at: RunningKirin,
}

/// Carries out the command.
pub fn run(arguments: PurgeArgs) -> Result<(), String> {
    let PurgeArgs { keys, prefixes, tags, site, soft, at } = arguments;
    let target = at.find()?;
    let names = Names { keys, prefixes, tags, soft };
    names.check()?;
    let answer = purge(&target, &names, site.as_deref())?;
    print(&describe(&names, &answer))
}

/// What was purged, and where.
#[derive(Deserialize)]
struct PurgeAnswer {
    #[serde(flatten)]
    purged: Purged,
    /// The number of machines with the same origin, if there is one.
    #[serde(default)]
    machines: Option<u64>,
}

/// Purges by the admin listener, or by the memcached port if there is none. With `site`, the names
/// are those of a site.
fn purge(target: &CommandTarget, names: &Names, site: Option<&str>) -> Result<PurgeAnswer, String> {
    // The memcached port knows no sites.
    let full_names = site.map_or(Ok(names.clone()), |site| names.of_site(site))?;
    let mut failures = Vec::new();
    match purge_by_admin(target, names, site) {
        Ok(answer) => return Ok(answer),
        Err(failure) => failures.push(failure),
    }
    for address in target.memcached() {
        match purge_by_memcached(address, &full_names) {
            Ok(purged) => return Ok(PurgeAnswer { purged, machines: None }),
            Err(failure) => failures.push(format!("memcached port {address}: {failure}")),
        }
    }
    Err(format!("nothing is purged\n{}", failures.join("\n")))
}

fn purge_by_admin(
    target: &CommandTarget,
    names: &Names,
    site: Option<&str>,
) -> Result<PurgeAnswer, String> {
    let Names { keys, prefixes, tags, soft } = names;
    let body = serde_json::json!({
        "keys": keys, "prefixes": prefixes, "tags": tags, "soft": soft, "site": site
    });
    let answer = target.post("/purge", &body.to_string())?;
    serde_json::from_str(&answer)
        .map_err(|error| format!("what came is no answer of Kirin: {error}"))
}

/// The most bytes of a key before it is encoded in base64. The encoded key has at most 250.
const BASE64_KEY_BYTES: usize = 186;

/// Returns the command that purges the responses which routes have cached under a target, or under
/// all targets with a prefix. Returns none if `name` is no target.
fn cached_command(name: &str, suffix: &str, mark: &str) -> Option<String> {
    let target = name.split_once(':').map_or(name, |(_, target)| target);
    if !name.starts_with('/') && !target.starts_with('/') {
        return None;
    }
    let mut cached = target_prefix(name.as_bytes());
    // A target that is too long for a key is purged as a prefix, together with all targets that
    // start in the same way.
    let suffix =
        if suffix.is_empty() && cached.len() <= BASE64_KEY_BYTES { " Ptag" } else { " Pprefix" };
    cached.truncate(BASE64_KEY_BYTES);
    Some(format!("md {} b{suffix}{mark}\r\n", BASE64_STANDARD.encode(cached)))
}

/// Purges by the meta commands with Kirin's `P` flag.
fn purge_by_memcached(address: &ListenAddress, names: &Names) -> Result<Purged, String> {
    let mut stream = BufReader::new(connect(address).map_err(|error| error.to_string())?);
    let mark = if names.soft { " I" } else { "" };
    let mut found = |command: String| {
        stream.get_mut().write_all(command.as_bytes())?;
        let mut line = String::new();
        stream.by_ref().take(1024).read_line(&mut line)?;
        match line.trim_end() {
            "HD" => Ok(true),
            "NF" => Ok(false),
            other => Err(io::Error::other(format!("it answers `{}`", other.escape_debug()))),
        }
    };
    let mut count = |list: &[String], suffix: &str| {
        let mut purged = 0;
        for name in list {
            let is_cached = match cached_command(name, suffix, mark).filter(|_| suffix != " Ptag") {
                Some(command) => found(command)?,
                None => false,
            };
            // No item has a longer key. With the name of a site, a key may be too long.
            let is_there =
                name.len() <= MAX_KEY_BYTES && found(format!("md {name}{suffix}{mark}\r\n"))?;
            purged += usize::from(is_there || is_cached);
        }
        Ok::<usize, io::Error>(purged)
    };
    let mut all = || {
        Ok(Purged {
            keys: count(&names.keys, "")?,
            prefixes: count(&names.prefixes, " Pprefix")?,
            tags: count(&names.tags, " Ptag")?,
        })
    };
    all().map_err(|error: io::Error| error.to_string())
}

/// Describes what was purged.
fn describe(names: &Names, answer: &PurgeAnswer) -> String {
    let PurgeAnswer { purged, machines } = answer;
    let mut parts = Vec::new();
    for (what, found, named) in [
        ("keys", purged.keys, names.keys.len()),
        ("prefixes", purged.prefixes, names.prefixes.len()),
        ("tags", purged.tags, names.tags.len()),
    ] {
        if named > 0 {
            parts.push(format!("{found} of {named} {what}"));
        }
    }
    let softly = if names.soft { " softly" } else { "" };
    let machines = machines.map(|machines| format!(" on {}", number_of(machines, "machine")));
    format!("purged{softly} {}{}\n", parts.join(", "), machines.unwrap_or_default())
}
