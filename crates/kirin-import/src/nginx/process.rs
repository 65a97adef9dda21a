//! The keys at the top of the file, and those of sections that the whole program has once.

use toml::Value;

use super::globals::Globals;
use super::output::Output;
use super::scope::Scope;
use super::units::text;
use crate::section::Section;
use crate::times::milliseconds;

/// Sets the keys of the process.
pub fn add_process<'a>(globals: &Globals<'a>, output: &Output) {
    let main = Scope::new(globals.main);
    let notes = globals.notes;
    let mut top = output.top.borrow_mut();
    if let Some(user) = main.one("user") {
        top.set("user", text(user.arg(0)));
        match user.args.len() {
            1 => notes.carried(user, ""),
            _ => notes.carried(user, "with the groups of that user"),
        }
    }
    if let Some(workers) = main.one("worker_processes") {
        match workers.arg(0).parse::<i64>().ok().filter(|number| (1..=1024).contains(number)) {
            Some(number) => {
                top.set("threads", number);
                notes.carried(workers, "threads of one process");
            }
            None => notes.by_itself(workers, "a thread for each core"),
        }
    }
    for events in main.own_named("events") {
        notes.by_itself(events, "Kirin has event loops of its own");
        for directive in events.inside() {
            let connections = directive.arg(0).parse::<i64>().ok();
            match (directive.name.as_str(), connections) {
                ("worker_connections", Some(connections)) if connections > 1024 => {
                    top.set("connections", connections);
                    notes.carried(directive, "in total, and of clients only");
                }
                ("worker_connections", _) => {
                    notes.by_itself(
                        directive,
                        "as many as `ulimit -n` allows; `connections` limits them",
                    );
                }
                _ => notes.by_itself(directive, "Kirin has event loops of its own"),
            }
        }
    }
    for other in ["stream", "mail"] {
        for block in main.own_named(other) {
            notes.left_out(
                block,
                format!(
                    "Kirin speaks HTTP and the protocol of memcached, so keep nginx for `{other}`"
                ),
            );
            leave_out_inside(block, globals, 0);
        }
    }
}

/// Notes everything inside a block that Kirin does not have.
fn leave_out_inside<'a>(
    block: &'a super::directive::Directive,
    globals: &Globals<'a>,
    depth: usize,
) {
    for directive in block.inside() {
        globals.notes.left_out(directive, "see the block around it");
        if depth < super::parser::MAX_DEPTH {
            leave_out_inside(directive, globals, depth + 1);
        }
    }
}

/// Returns the section of the cache of open files.
pub fn open_file_cache(globals: &Globals<'_>) -> Option<Section> {
    let mut section = Section::new("[open_file_cache]");
    let notes = globals.notes;
    if let Some(directive) = globals.http.one("open_file_cache") {
        match directive.option("max").and_then(|max| max.parse::<i64>().ok()).filter(|max| *max > 0)
        {
            Some(max) => {
                section.set("paths", max);
                notes.carried(directive, "for each event loop");
            }
            None => notes.by_itself(directive, "Kirin remembers open files"),
        }
    }
    if let Some(directive) = globals.http.one("open_file_cache_valid") {
        match milliseconds(directive.arg(0)).filter(|time| *time > 0) {
            Some(time) => {
                let time = if time % 1000 == 0 {
                    format!("{}s", time / 1000)
                } else {
                    format!("{time}ms")
                };
                section.set("validity", Value::String(time));
                notes.carried(directive, "");
            }
            None => notes.left_out(directive, "`validity` is a time above 0"),
        }
    }
    (!section.keys.is_empty()).then_some(section)
}
