//! `mg`, `ms`, `md`, `ma` and `me`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kirin_store::{
    ArithmeticOutcome, ArithmeticRequest, DeleteOutcome, DeleteRequest, Direction, Expires,
    GetRequest, Invalidation, MetaHit, MetaOutcome, NewItem, Now, StoreMode, StoreOutcome,
    StoreRequest,
};

use super::{Executor, NON_NUMERIC, unstorable};
use crate::codec::{Exptime, Extension, Key, Meta, MetaFlags, MetaSet, verb};
use crate::counters::add;
use crate::output::OutputBuffer;
use crate::watch::ObservedFlags;

impl Executor {
    pub(super) fn meta_get(&self, meta: &Meta<'_>, output: &mut OutputBuffer) {
        let now = self.now();
        let flags = &meta.flags;
        let at = |exptime: Exptime| exptime.expires(now);
        let request = GetRequest {
            vivify: vivify_exptime(flags).map(at),
            recache_before: flags.recache.filter(|exptime| exptime.0 != 0).map(at),
            touch: flags.ttl.map(at),
            new_cas: flags.new_cas,
            no_bump: flags.no_bump,
        };
        // A `t` before the `T` requests the time that the item had left before this command.
        let expires_before = (flags.ttl.is_some() && flags.has(b't'))
            .then(|| self.store().peek(&meta.key.bytes, now))
            .flatten()
            .map(|item| item.expires());
        match self.store().meta_get(&meta.key.bytes, &request, now) {
            MetaOutcome::Hit(hit) => push_hit(hit, meta, expires_before, now, output),
            MetaOutcome::Miss | MetaOutcome::OutOfMemory => {
                if !flags.quiet {
                    output.push(b"EN");
                    push_echo(&meta.key, flags, output);
                    output.push(b"\r\n");
                }
            }
        }
    }

    pub(super) fn meta_set(
        &self,
        set: MetaSet<'_>,
        observed: ObservedFlags,
        output: &mut OutputBuffer,
    ) {
        let now = self.now();
        let value_len = set.value.byte_len();
        let flags = &set.flags;
        let tags: Vec<&[u8]> = match flags.extension {
            Extension::Tags(tags) => tags.iter().collect(),
            _ => Vec::new(),
        };
        let joins = matches!(set.mode, StoreMode::Append | StoreMode::Prepend);
        let item = NewItem {
            value: set.value.into(),
            flags: flags.client_flags,
            expires: flags.ttl.map_or(Expires::NEVER, |exptime| exptime.expires(now)),
            tags: &tags,
        };
        let request = StoreRequest {
            mode: set.mode,
            // For append and prepend, a CAS unique of 0 means none (memcached's `do_store_item`).
            compare_cas: flags.cas.filter(|cas| !(joins && *cas == 0)),
            new_cas: flags.new_cas,
            invalidate_older: flags.invalidate,
            vivify: flags.vivify.map(|exptime| exptime.expires(now)),
            unchanged_since: None,
        };
        let (key, verb) = (&set.key.bytes, verb(set.mode, flags.cas.is_some()));
        let expires = request.vivify.unwrap_or(item.expires);
        let watched = self.watch_store(key, set.mode, verb, expires, value_len, observed);
        let outcome = self.store().store(key, item, &request, now);
        if let Some(watched) = watched {
            self.publish_store(key, &watched, outcome);
        }
        let (code, cas) = match outcome {
            StoreOutcome::Stored { .. } if flags.quiet => return,
            StoreOutcome::Stored { cas } => ("HD", cas),
            StoreOutcome::NotStored => ("NS", 0),
            StoreOutcome::Exists => ("EX", 0),
            StoreOutcome::NotFound => ("NF", 0),
            outcome => match unstorable(outcome, set.mode) {
                Some(line) => return output.line(line),
                None => ("NS", 0),
            },
        };
        output.push(code.as_bytes());
        for (name, token) in flags.tokens() {
            match name {
                b'c' => push_number(b" c", cas, output),
                name => push_echoed(name, token, &set.key, output),
            }
        }
        output.push(b"\r\n");
    }

    pub(super) fn meta_delete(&self, meta: &Meta<'_>, output: &mut OutputBuffer) {
        let flags = &meta.flags;
        let how = if flags.invalidate { Invalidation::Soft } else { Invalidation::Hard };
        let now = self.now();
        let found = |found| if found { DeleteOutcome::Deleted } else { DeleteOutcome::NotFound };
        let outcome = match flags.extension {
            Extension::Tag => found(self.store().invalidate_tag(&meta.key.bytes, how)),
            Extension::Prefix => found(self.store().invalidate_prefix(&meta.key.bytes, how, now)),
            Extension::None | Extension::Tags(_) => {
                let request = DeleteRequest {
                    compare_cas: flags.cas,
                    new_cas: flags.new_cas,
                    invalidate: flags.invalidate,
                    expires: flags
                        .ttl
                        .filter(|_| flags.invalidate)
                        .map(|exptime| exptime.expires(now)),
                    remove_value: flags.empty_value,
                };
                self.store().meta_delete(&meta.key.bytes, &request, now)
            }
        };
        push_deleted(outcome, meta, output);
    }

    pub(super) fn meta_arithmetic(
        &self,
        meta: &Meta<'_>,
        direction: Direction,
        observed: ObservedFlags,
        output: &mut OutputBuffer,
    ) {
        let now = self.now();
        let flags = &meta.flags;
        let at = |exptime: Exptime| exptime.expires(now);
        let request = ArithmeticRequest {
            direction,
            delta: flags.delta.unwrap_or(1),
            vivify: vivify_exptime(flags).map(at),
            initial: flags.initial,
            touch: flags.ttl.map(at),
            compare_cas: flags.cas,
            new_cas: flags.new_cas,
        };
        // The quiet flag hides the answer to a change but not the answer to a creation. A `t`
        // before the `N` or the `T` requests the time left before this command. Both need the item
        // as it was before.
        let looks_back =
            (flags.vivify.is_some() || flags.ttl.is_some()) && (flags.quiet || flags.has(b't'));
        let before = looks_back.then(|| self.store().peek(&meta.key.bytes, now));
        let created = flags.vivify.is_some() && matches!(before, Some(None));
        let quiet = flags.quiet && !created;
        // memcached creates the number with an `add` of its own.
        let creation = flags.vivify.and_then(|_| {
            let digits = itoa::Buffer::new().format(flags.initial).len();
            let expires = request.vivify.unwrap_or(Expires::NEVER);
            let key = &meta.key.bytes;
            self.watch_store(key, StoreMode::Add, "add", expires, digits, observed)
        });
        let outcome = self.store().arithmetic(&meta.key.bytes, &request, now);
        if let (Some(creation), ArithmeticOutcome::Counted(counted)) = (creation, &outcome) {
            self.publish_creation(&meta.key.bytes, &creation, counted.item.cas());
        }
        match outcome {
            ArithmeticOutcome::Counted(_) if quiet => return,
            ArithmeticOutcome::Counted(counted) => {
                let mut digits = itoa::Buffer::new();
                let digits = digits.format(counted.value);
                if flags.value {
                    push_number(b"VA ", digits.len(), output);
                } else {
                    output.push(b"HD");
                }
                let mut expires = match before {
                    _ if created => Expires::NEVER,
                    Some(Some(item)) => item.expires(),
                    _ => counted.item.expires(),
                };
                for (name, token) in flags.tokens() {
                    match name {
                        b'T' => expires = flags.ttl.map_or(expires, at),
                        b'N' if created => expires = flags.vivify.map_or(expires, at),
                        b'c' => push_number(b" c", counted.item.cas(), output),
                        b't' => push_ttl(expires, now, output),
                        name => push_echoed(name, token, &meta.key, output),
                    }
                }
                if flags.value {
                    output.push(b"\r\n");
                    output.push(digits.as_bytes());
                }
            }
            ArithmeticOutcome::NotFound => {
                output.push(b"NF");
                push_echo(&meta.key, flags, output);
            }
            ArithmeticOutcome::Exists => {
                output.push(b"EX");
                push_echo(&meta.key, flags, output);
            }
            ArithmeticOutcome::NonNumeric => output.push(NON_NUMERIC.as_bytes()),
            ArithmeticOutcome::OutOfMemory => output.push(b"SERVER_ERROR out of memory"),
        }
        output.push(b"\r\n");
    }

    pub(super) fn meta_debug(&self, key: &Key<'_>, output: &mut OutputBuffer) {
        add(&self.counters().cmd_meta, 1);
        let now = self.now();
        let Some(item) = self.store().peek(&key.bytes, now) else {
            return output.line("EN");
        };
        output.push(b"ME ");
        push_key(key, output);
        // memcached counts down from 0: a minute left is -60, and never is -1.
        let expires = item.expires().seconds_left(now).map_or(-1, |left| -(left as i64));
        push_number(b" exp=", expires, output);
        push_number(b" la=", now.seconds_since(item.last_access()), output);
        push_number(b" cas=", item.cas(), output);
        output.push(if item.was_fetched() { b" fetch=yes cls=1" } else { b" fetch=no cls=1" });
        push_number(b" size=", self.store().charged_bytes(&key.bytes).unwrap_or(0), output);
        output.push(b"\r\n");
    }
}

/// Returns the expiry of an item that is created on a miss. memcached goes through the flags in
/// order, so the last one of `N` and `T` counts.
fn vivify_exptime(flags: &MetaFlags<'_>) -> Option<Exptime> {
    let vivify = flags.vivify?;
    match flags.tokens().filter(|(name, _)| matches!(name, b'N' | b'T')).last() {
        Some((b'T', _)) => flags.ttl,
        _ => Some(vivify),
    }
}

fn push_hit(
    hit: MetaHit,
    meta: &Meta<'_>,
    expires_before: Option<Expires>,
    now: Now,
    output: &mut OutputBuffer,
) {
    let MetaHit { item, won, vivified } = hit;
    let flags = &meta.flags;
    if flags.value {
        push_number(b"VA ", item.value_len(), output);
    } else {
        output.push(b"HD");
    }
    let mut expires = match expires_before {
        _ if vivified => Expires::NEVER,
        Some(before) => before,
        None => item.expires(),
    };
    for (name, token) in flags.tokens() {
        match name {
            b'T' => expires = flags.ttl.map_or(expires, |exptime| exptime.expires(now)),
            b'N' if vivified => {
                expires = flags.vivify.map_or(expires, |exptime| exptime.expires(now))
            }
            b't' => push_ttl(expires, now, output),
            b's' => push_number(b" s", item.value_len(), output),
            b'c' => push_number(b" c", item.cas(), output),
            b'f' => push_number(b" f", item.flags(), output),
            b'l' => push_number(b" l", now.seconds_since(item.last_access()), output),
            b'h' => output.push(if item.was_fetched() { b" h1" } else { b" h0" }),
            name => push_echoed(name, token, &meta.key, output),
        }
    }
    if item.is_won() && !won {
        output.push(b" Z");
    }
    if item.is_stale() {
        output.push(b" X");
    }
    if won {
        output.push(b" W");
    }
    output.push(b"\r\n");
    if flags.value {
        output.value(item);
        output.push(b"\r\n");
    }
}

/// Answers an `md`.
pub(super) fn push_deleted(outcome: DeleteOutcome, meta: &Meta<'_>, output: &mut OutputBuffer) {
    let code = match outcome {
        DeleteOutcome::Deleted if meta.flags.quiet => return,
        DeleteOutcome::Deleted => "HD",
        DeleteOutcome::NotFound => "NF",
        DeleteOutcome::Exists => "EX",
    };
    output.push(code.as_bytes());
    push_echo(&meta.key, &meta.flags, output);
    output.push(b"\r\n");
}

/// Adds the flags that every answer returns: opaque and key.
fn push_echo(key: &Key<'_>, flags: &MetaFlags<'_>, output: &mut OutputBuffer) {
    for (name, token) in flags.tokens() {
        push_echoed(name, token, key, output);
    }
}

fn push_echoed(name: u8, token: &[u8], key: &Key<'_>, output: &mut OutputBuffer) {
    match name {
        b'O' => {
            output.push(b" ");
            output.push(token);
        }
        b'k' => {
            output.push(b" k");
            push_key(key, output);
            if key.base64 {
                output.push(b" b");
            }
        }
        _ => {}
    }
}

fn push_key(key: &Key<'_>, output: &mut OutputBuffer) {
    if key.base64 {
        output.push(STANDARD.encode(&key.bytes).as_bytes());
    } else {
        output.push(&key.bytes);
    }
}

fn push_number(name: &[u8], value: impl itoa::Integer, output: &mut OutputBuffer) {
    output.push(name);
    output.number(value);
}

fn push_ttl(expires: Expires, now: Now, output: &mut OutputBuffer) {
    match expires.seconds_left(now) {
        Some(left) => push_number(b" t", left, output),
        None => output.push(b" t-1"),
    }
}
