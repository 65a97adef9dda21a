//! Long lists, piece by piece: the items of the store, and the statistics by prefix.
//!
//! A list is written in pieces of limited size. Between two pieces the client reads, and the loop
//! serves others. So a list of a million items takes no more memory than a piece, and a client that
//! stops reading stops the list.

use std::fmt::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kirin_store::{Now, ScanCursor, ScannedItem};

use super::Executor;
use crate::codec::{ItemList, ListFormat};
use crate::output::OutputBuffer;
use crate::text_key::{is_of_cache, is_text, uri_encoded};

/// A piece ends when the output has this many bytes.
const PIECE_BYTES: usize = 64 << 10;

/// The most steps of a scan in a piece. A scan that finds few items must not keep the loop.
const STEPS_PER_PIECE: usize = 16;

/// The prefixes that are read under one lock.
const PREFIXES_PER_STEP: usize = 64;

/// A list that has begun.
#[derive(Debug, PartialEq, Eq)]
pub struct Listing(ListingState);

#[derive(Debug, PartialEq, Eq)]
enum ListingState {
    Items {
        format: ListFormat,
        cursor: ScanCursor,
        /// The number of items that may follow. `None` for no limit.
        left: Option<u32>,
    },
    Prefixes {
        /// The last prefix that was written.
        after: Option<Box<[u8]>>,
    },
}

impl Listing {
    pub(super) fn of_items(list: ItemList) -> Listing {
        let cursor = ScanCursor::default();
        Listing(ListingState::Items { format: list.format, cursor, left: list.limit })
    }

    pub(super) fn of_prefixes() -> Listing {
        Listing(ListingState::Prefixes { after: None })
    }
}

impl Executor {
    /// Writes the next piece of a list. Returns whether more follows.
    pub fn continue_listing(&self, listing: &mut Listing, output: &mut OutputBuffer) -> bool {
        for _ in 0..STEPS_PER_PIECE {
            if !self.list_step(listing, output) {
                return false;
            }
            if output.unsent_bytes() >= PIECE_BYTES {
                break;
            }
        }
        true
    }

    fn list_step(&self, listing: &mut Listing, output: &mut OutputBuffer) -> bool {
        match &mut listing.0 {
            ListingState::Items { format, cursor, left } => {
                let mut line = String::new();
                let more = self.store().scan(cursor, self.now(), |item| {
                    if *left != Some(0) && push_item(item, *format, &mut line, output) {
                        *left = left.map(|left| left - 1);
                    }
                });
                if more && *left != Some(0) {
                    return true;
                }
                output.line(if *format == ListFormat::Mgdump { "EN" } else { "END" });
            }
            ListingState::Prefixes { after } => {
                let rows = self.server.prefixes().page(after.as_deref(), PREFIXES_PER_STEP);
                for (prefix, counts) in &rows {
                    output.push(b"PREFIX ");
                    output.push(prefix);
                    output.line(&format!(
                        " get {} hit {} set {} del {}",
                        counts.gets, counts.hits, counts.sets, counts.deletes
                    ));
                }
                if rows.len() == PREFIXES_PER_STEP {
                    *after = rows.into_iter().next_back().map(|(prefix, _)| prefix);
                    return true;
                }
                output.line("END");
            }
        }
        false
    }
}

/// Adds the line of an item. Returns false if the list does not have it. `line` is scratch space.
fn push_item(
    item: &ScannedItem<'_>,
    format: ListFormat,
    line: &mut String,
    output: &mut OutputBuffer,
) -> bool {
    if is_of_cache(item.key) {
        return false;
    }
    match format {
        ListFormat::Metadump => {
            let expires = item.expires.time().map_or(-1, |time| time.unix_seconds() as i64);
            line.clear();
            // Writing into a string never fails.
            let _ = writeln!(
                line,
                "key={} exp={expires} la={} cas={} fetch={} cls=1 size={}",
                uri_encoded(item.key),
                item.last_access.unix_seconds(),
                item.cas,
                if item.was_fetched { "yes" } else { "no" },
                item.charged_bytes,
            );
            output.push(line.as_bytes());
        }
        ListFormat::Mgdump => {
            output.push(b"mg ");
            if is_text(item.key) {
                output.push(item.key);
                output.line("");
            } else {
                output.push(STANDARD.encode(item.key).as_bytes());
                output.line(" b");
            }
        }
        ListFormat::Cachedump => {
            // The line has no way to write such a key.
            if !is_text(item.key) {
                return false;
            }
            let expires = item.expires.time().map_or(0, Now::unix_seconds);
            output.push(b"ITEM ");
            output.push(item.key);
            output.line(&format!(" [{} b; {expires} s]", item.value_len));
        }
    }
    true
}
