//! Backends, probes, directors and access lists.

use std::collections::HashMap;

use toml::{Table, Value};

use crate::draft::Draft;
use crate::section::Section;
use crate::steps::network;
use crate::times::time_with_unit;
use crate::vcl::conditions::Lists;
use crate::vcl::tokens::Token;
use crate::vcl::tree::{Declaration, Statement, StatementKind};

/// What a backend says: its server, and keys of its upstream.
#[derive(Debug, Clone, Default)]
struct Backend {
    server: Option<String>,
    keys: Section,
    health: Option<Table>,
}

/// A director: its backends with their weights.
#[derive(Debug, Clone, Default)]
struct Director {
    kind: String,
    members: Vec<(String, f64)>,
    /// What its hash is of.
    hash: Option<String>,
}

/// Backends and directors by their names.
#[derive(Debug, Default)]
pub(crate) struct Backends {
    backends: HashMap<String, Backend>,
    directors: HashMap<String, Director>,
    probes: HashMap<String, Table>,
    /// The first backend, which is the default one unless one has that name.
    first: Option<String>,
}

impl Backends {
    /// Reads a backend or a probe.
    pub(crate) fn declare(&mut self, declaration: &Declaration, draft: &mut Draft) {
        let name = declaration.word(1).to_owned();
        if declaration.word(0) == "probe" {
            let probe = probe(&declaration.body, draft);
            self.probes.insert(name, probe);
        } else {
            let mut backend = Backend::default();
            backend.keys.comment(declaration.place.to_string());
            self.backend(&mut backend, &declaration.body, draft);
            self.first = self.first.take().or(Some(name.clone()));
            self.backends.insert(name, backend);
        }
        let line = crate::vcl::tokens::line_of(&declaration.words);
        draft.notes.carried(&declaration.place, &line, "");
    }

    fn backend(&self, backend: &mut Backend, body: &[Statement], draft: &mut Draft) {
        let mut port = "80".to_owned();
        let mut host = None;
        for statement in body {
            let line = statement.line();
            let (key, value) = match &statement.kind {
                StatementKind::Block(words, inner) if word(words, 0) == ".probe" => {
                    backend.health = Some(probe(inner, draft));
                    draft.notes.carried(&statement.place, &line, "");
                    continue;
                }
                StatementKind::Simple(words) => (word(words, 0), word(words, 2)),
                _ => ("", ""),
            };
            let known = match key {
                ".host" => {
                    host = Some(value.to_owned());
                    true
                }
                ".port" => {
                    value.clone_into(&mut port);
                    true
                }
                ".path" => {
                    backend.server = Some(format!("unix:{value}"));
                    true
                }
                ".probe" => {
                    backend.health = self.probes.get(value).cloned();
                    backend.health.is_some()
                }
                ".max_connections" => match value.parse::<i64>() {
                    Ok(most) => {
                        backend.keys.set("max_in_flight", most);
                        true
                    }
                    Err(_) => false,
                },
                ".host_header" => {
                    backend.keys.set("host", value);
                    true
                }
                ".connect_timeout" => set_time(&mut backend.keys, "connect_timeout", value),
                ".first_byte_timeout" => set_time(&mut backend.keys, "first_byte_timeout", value),
                ".between_bytes_timeout" => set_time(&mut backend.keys, "idle_timeout", value),
                _ => false,
            };
            if known {
                draft.notes.carried(&statement.place, &line, "");
            } else {
                let text = "not known here, or Kirin cannot take the value";
                draft.notes.left_out(&statement.place, &line, text);
            }
        }
        let host = host.map(|host| {
            let host = if host.contains(':') && !host.starts_with('[') {
                format!("[{host}]")
            } else {
                host
            };
            format!("{host}:{port}")
        });
        backend.server = backend.server.take().or(host);
    }

    /// Reads a statement of `vcl_init`. Returns whether it is about a director.
    pub(crate) fn director(&mut self, words: &[Token]) -> bool {
        if word(words, 0) == "new" {
            let kind = word(words, 3).strip_prefix("directors.").unwrap_or_default();
            let director = Director { kind: kind.to_owned(), ..Director::default() };
            self.directors.insert(word(words, 1).to_owned(), director);
            return !kind.is_empty();
        }
        let Some((name, method)) = word(words, 0).rsplit_once('.') else { return false };
        let Some(director) = self.directors.get_mut(name) else { return false };
        match method {
            "add_backend" => {
                let weight = word(words, 4).parse().unwrap_or(1.0);
                director.members.push((word(words, 2).to_owned(), weight));
                true
            }
            "reconfigure" => true,
            _ => false,
        }
    }

    /// Returns the place of the default backend.
    pub(crate) fn default_place(&mut self, draft: &mut Draft) -> Option<String> {
        let name = if self.backends.contains_key("default") {
            "default"
        } else {
            self.first.as_deref()?
        };
        let name = name.to_owned();
        self.place(&name, None, draft)
    }

    /// Returns the place of a backend or director. `hash` is what its method is called with.
    pub(crate) fn place(
        &mut self,
        name: &str,
        hash: Option<&str>,
        draft: &mut Draft,
    ) -> Option<String> {
        let (servers, mut keys, health) = match self.directors.get_mut(name) {
            Some(director) => {
                director.hash = hash.map(str::to_owned).or(director.hash.take());
                let director = director.clone();
                self.members(&director)?
            }
            None => {
                let backend = self.backends.get(name)?.clone();
                (vec![Value::from(backend.server?)], backend.keys, backend.health)
            }
        };
        keys.keys.insert(0, ("servers".to_owned(), Value::Array(servers)));
        if let Some(health) = health.filter(|health| health.contains_key("path")) {
            keys.set("health", health);
        }
        Some(format!("proxy:{}", draft.upstreams.add(name, keys)))
    }

    fn members(&self, director: &Director) -> Option<(Vec<Value>, Section, Option<Table>)> {
        let mut servers = Vec::new();
        let mut keys: Option<Section> = None;
        let mut health = None;
        for (number, (name, weight)) in director.members.iter().enumerate() {
            let Some(backend) = self.backends.get(name) else { continue };
            let Some(server) = &backend.server else { continue };
            keys = keys.or(Some(backend.keys.clone()));
            health = health.or(backend.health.clone());
            let mut table =
                Table::from_iter([("address".to_owned(), Value::from(server.as_str()))]);
            #[allow(clippy::cast_possible_truncation)]
            let whole = weight.round().clamp(1.0, 1000.0) as i64;
            if whole > 1 && director.kind != "fallback" {
                table.insert("weight".to_owned(), Value::from(whole));
            }
            if director.kind == "fallback" && number > 0 {
                table.insert("backup".to_owned(), Value::from(true));
            }
            servers.push(if table.len() == 1 {
                Value::from(server.as_str())
            } else {
                Value::Table(table)
            });
        }
        let mut keys = keys?;
        if matches!(director.kind.as_str(), "hash" | "shard") {
            let by = match director.hash.as_deref() {
                Some("client.identity" | "client.ip") => "address".to_owned(),
                Some(name) => match name.strip_prefix("req.http.") {
                    Some(field) => format!("header:{field}"),
                    None => "target".to_owned(),
                },
                None => "target".to_owned(),
            };
            keys.set("balance", "hash");
            keys.set("hash_key", by);
        } else if director.kind == "least_connections" {
            keys.set("balance", "least-connections");
        }
        Some((servers, keys, health))
    }
}

/// Returns the text of a token.
pub(crate) fn word(words: &[Token], number: usize) -> &str {
    words.get(number).map_or("", |token| token.text.as_str())
}

fn set_time(keys: &mut Section, key: &str, value: &str) -> bool {
    match time_with_unit(value) {
        Some(time) => {
            keys.set(key, time);
            true
        }
        None => false,
    }
}

/// Reads a probe.
fn probe(body: &[Statement], draft: &mut Draft) -> Table {
    let mut health = Table::new();
    for statement in body {
        let StatementKind::Simple(words) = &statement.kind else { continue };
        let value = word(words, 2);
        let entry = match word(words, 0) {
            ".url" => Some(("path", Value::from(value))),
            ".interval" => time_with_unit(value).map(|time| ("interval", time)),
            ".timeout" => time_with_unit(value).map(|time| ("timeout", time)),
            ".expected_response" => Some(("status", Value::from(value))),
            ".threshold" => value.parse::<i64>().ok().map(|count| ("healthy_after", count.into())),
            ".window" | ".initial" => {
                let text = "results in a row count: `healthy_after` and `unhealthy_after`";
                draft.notes.by_itself(&statement.place, &statement.line(), text);
                continue;
            }
            _ => None,
        };
        match entry {
            Some((key, value)) => {
                health.insert(key.to_owned(), value);
                draft.notes.carried(&statement.place, &statement.line(), "");
            }
            None => {
                let text =
                    "a check of Kirin asks for a path with GET: write `health` (docs/proxy.md)";
                draft.notes.left_out(&statement.place, &statement.line(), text);
            }
        }
    }
    health
}

/// Reads an access list.
pub(crate) fn access_list(declaration: &Declaration, lists: &mut Lists, draft: &mut Draft) {
    let mut clients = Some(Vec::new());
    for statement in &declaration.body {
        let StatementKind::Simple(words) = &statement.kind else { continue };
        let text: String = words.iter().map(|token| token.text.as_str()).collect();
        let found = match text.as_str() {
            "localhost" => Some(vec![Value::from("127.0.0.1"), Value::from("::1")]),
            text => network(text).map(|network| vec![network.into()]),
        };
        match (found, clients.as_mut()) {
            (Some(found), Some(clients)) => clients.extend(found),
            _ => clients = None,
        }
    }
    let line = crate::vcl::tokens::line_of(&declaration.words);
    match &clients {
        Some(_) => draft.notes.carried(&declaration.place, &line, "Where it is used."),
        None => {
            let text = "Kirin has addresses and networks, without names and `!`. What uses the list \
                        is closed";
            draft.notes.left_out(&declaration.place, &line, text);
        }
    }
    lists.insert(declaration.word(1).to_owned(), clients);
}
