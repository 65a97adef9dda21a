//! `kirin purge`, `kirin status` and `kirin explain`: clients of the admin listener. A purge goes
//! to the memcached port if there is no admin listener.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use kirin_cache::key::target_prefix;
use kirin_config::{ConfigErrors, Source};
use kirin_gateway::explanation::stored::{Question, StoredAnswer};
use kirin_gateway::purge::command::{MAX_KEY_BYTES, Purge, Purged};
use kirin_http::ListenAddress;
use kirin_http::response_head::{self, Field};

/// How long a client waits for Kirin's answer.
const WAIT_LIMIT: Duration = Duration::from_secs(10);

/// The largest answer in bytes.
const ANSWER_LIMIT_BYTES: u64 = 16 << 20;

/// The address of a running Kirin.
pub struct Target {
    admin: Option<ListenAddress>,
    memcached: Vec<ListenAddress>,
    /// The file or option that named it, for messages.
    named_by: String,
}

impl Target {
    /// Returns the address on the command line.
    pub fn at(address: &str) -> Result<Self, String> {
        let admin =
            address.parse().map_err(|error: kirin_http::InvalidListenAddress| error.to_string())?;
        Ok(Self { admin: Some(admin), memcached: Vec::new(), named_by: "--admin".into() })
    }

    /// Returns the addresses in a configuration file.
    pub fn of_config(path: &Path) -> Result<Self, String> {
        let read = || kirin_config::read_command_addresses(&Source::read(path)?);
        let (admin, memcached) = read().map_err(|errors: ConfigErrors| errors.to_string())?;
        Ok(Self { admin, memcached, named_by: path.display().to_string() })
    }

    /// Purges by the admin listener, or by the memcached port if there is none. With `site`, the
    /// names are those of a site.
    pub fn purge(&self, purge: &Purge, site: Option<&str>) -> Result<Purged, String> {
        // The memcached port knows no sites.
        let full_names = site.map_or(Ok(purge.clone()), |site| purge.of_site(site))?;
        let mut failures = Vec::new();
        if let Some(address) = &self.admin {
            match purge_by_admin(address, purge, site) {
                Ok(purged) => return Ok(purged),
                Err(failure) => failures.push(format!("admin listener {address}: {failure}")),
            }
        }
        for address in &self.memcached {
            match purge_by_memcached(address, &full_names) {
                Ok(purged) => return Ok(purged),
                Err(failure) => failures.push(format!("memcached port {address}: {failure}")),
            }
        }
        if failures.is_empty() {
            return Err(format!(
                "{} has neither `address` of [admin] nor `memcached` of [store], by which a running Kirin can be told; add\n\
                 [admin]\naddress = \"unix:admin.sock\"",
                self.named_by
            ));
        }
        Err(format!("nothing is purged\n{}", failures.join("\n")))
    }

    /// Returns the status as JSON.
    pub fn status(&self) -> Result<String, String> {
        let Some(address) = &self.admin else {
            return Err(format!("{} has no `address` of [admin]", self.named_by));
        };
        let failed = |failure| format!("admin listener {address}: {failure}");
        ask(address, "GET", "/status", "").map_err(failed)
    }
}

/// Asks a running Kirin what its store has for a request.
pub fn explain(address: &ListenAddress, question: &Question) -> Result<StoredAnswer, String> {
    let body = serde_json::to_string(question).map_err(|error| error.to_string())?;
    let answer = ask(address, "POST", "/explain", &body)?;
    serde_json::from_str(&answer)
        .map_err(|error| format!("what came is no answer of Kirin: {error}"))
}

fn purge_by_admin(
    address: &ListenAddress,
    purge: &Purge,
    site: Option<&str>,
) -> Result<Purged, String> {
    let Purge { keys, prefixes, tags, soft } = purge;
    let body = serde_json::json!({
        "keys": keys, "prefixes": prefixes, "tags": tags, "soft": soft, "site": site
    });
    let answer = ask(address, "POST", "/purge", &body.to_string())?;
    serde_json::from_str(&answer)
        .map_err(|error| format!("what came is no answer of Kirin: {error}"))
}

/// A connection of either kind.
trait Connection: Read + Write {}
impl<T: Read + Write> Connection for T {}

fn connect(address: &ListenAddress) -> io::Result<Box<dyn Connection>> {
    match address {
        ListenAddress::Unix(path) => {
            let stream = UnixStream::connect(path)?;
            stream.set_read_timeout(Some(WAIT_LIMIT))?;
            stream.set_write_timeout(Some(WAIT_LIMIT))?;
            Ok(Box::new(stream))
        }
        ListenAddress::Tcp(address) => {
            let stream = TcpStream::connect_timeout(address, WAIT_LIMIT)?;
            stream.set_read_timeout(Some(WAIT_LIMIT))?;
            stream.set_write_timeout(Some(WAIT_LIMIT))?;
            Ok(Box::new(stream))
        }
    }
}

/// Sends one request on a connection of its own, and returns the body of the answer.
fn ask(address: &ListenAddress, method: &str, path: &str, body: &str) -> Result<String, String> {
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let exchange = || {
        let mut stream = connect(address)?;
        stream.write_all(request.as_bytes())?;
        let mut answer = Vec::new();
        stream.take(ANSWER_LIMIT_BYTES).read_to_end(&mut answer)?;
        Ok(answer)
    };
    let answer = exchange().map_err(|error: io::Error| error.to_string())?;
    let parsed =
        response_head::parse(&answer, |_, _| Field::Keep).map_err(|error| error.to_string())?;
    let Some((head, length)) = parsed else {
        return Err("the connection was closed without an answer".into());
    };
    let body = String::from_utf8_lossy(&answer[length..]).into_owned();
    if !head.status.is_success() {
        return Err(format!("it answers {}: {}", head.status, body.trim_end()));
    }
    Ok(body)
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
fn purge_by_memcached(address: &ListenAddress, purge: &Purge) -> Result<Purged, String> {
    let mut stream = BufReader::new(connect(address).map_err(|error| error.to_string())?);
    let mark = if purge.soft { " I" } else { "" };
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
    let mut count = |names: &[String], suffix: &str| {
        let mut purged = 0;
        for name in names {
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
            keys: count(&purge.keys, "")?,
            prefixes: count(&purge.prefixes, " Pprefix")?,
            tags: count(&purge.tags, " Ptag")?,
        })
    };
    all().map_err(|error: io::Error| error.to_string())
}

/// Describes what was purged.
pub fn describe(purge: &Purge, purged: Purged) -> String {
    let mut parts = Vec::new();
    for (what, found, named) in [
        ("keys", purged.keys, purge.keys.len()),
        ("prefixes", purged.prefixes, purge.prefixes.len()),
        ("tags", purged.tags, purge.tags.len()),
    ] {
        if named > 0 {
            parts.push(format!("{found} of {named} {what}"));
        }
    }
    let softly = if purge.soft { " softly" } else { "" };
    format!("purged{softly} {}\n", parts.join(", "))
}
