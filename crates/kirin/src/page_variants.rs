//! Coded variants of a page: made when they are first asked for, and kept beside the item inside the store's budget.
//!
//! What is small is compressed at once; for the rest a thread does it, and until then clients get the page as it is. Called
//! by the `store` place.

use crate::coded_fields;
use crate::compress_threads::CompressThreads;
use crate::page::{Page, PageHead};
use bytes::Bytes;
use kirin_compress::{Coding, Effort, INLINE_BYTES, encode};
use kirin_http::FieldLines;
use kirin_store::{ItemRef, Now, Store};
use std::cell::RefCell;
use std::collections::HashSet;
use std::rc::Rc;
use std::sync::Arc;

/// A page in one coding.
#[derive(Clone)]
pub struct PageVariant {
    /// Of a 200 or 304.
    pub fields: FieldLines,
    /// The coded body.
    pub body: Bytes,
}

/// The companion of an item that is its variant in the coding of this index; `None` when that would be no smaller. A type of
/// its own for each coding, as the store keeps one companion of a type.
struct Kept<const CODING: usize>(Option<PageVariant>);

/// A variant that a thread is at: the item's key, and what in.
type Underway = (Vec<u8>, Coding);

/// What a loop knows of variants in the making.
#[derive(Default)]
pub struct PageVariants {
    underway: Rc<RefCell<HashSet<Underway>>>,
}

impl PageVariants {
    /// The variant of `page`, which was compiled from `item`; `None` if there is none yet, or it would be no smaller.
    pub fn get(
        &self,
        store: &Arc<Store>,
        item: &ItemRef,
        page: &Arc<Page>,
        coding: Coding,
        now: Now,
        threads: &CompressThreads,
    ) -> Option<PageVariant> {
        match coding.index() {
            0 => self.get_of::<0>(store, item, page, now, threads),
            1 => self.get_of::<1>(store, item, page, now, threads),
            _ => self.get_of::<2>(store, item, page, now, threads),
        }
    }

    fn get_of<const CODING: usize>(
        &self,
        store: &Arc<Store>,
        item: &ItemRef,
        page: &Arc<Page>,
        now: Now,
        threads: &CompressThreads,
    ) -> Option<PageVariant> {
        if let Some(kept) = item.companion::<Kept<CODING>>() {
            return kept.0.clone();
        }
        let coding = Coding::ALL[CODING];
        if page.body.len() <= INLINE_BYTES {
            return store.companion(item, now, |_| make::<CODING>(page, coding)).0.clone();
        }
        let of = (item.key().to_vec(), coding);
        if !self.underway.borrow().contains(&of)
            && let Some(thread) = threads.free()
        {
            self.underway.borrow_mut().insert(of.clone());
            let (store, item, page) = (Arc::clone(store), item.clone(), Arc::clone(page));
            let made = tokio::task::spawn_blocking(move || {
                store.companion(&item, now, |_| make::<CODING>(&page, coding));
                drop(thread);
            });
            let underway = Rc::clone(&self.underway);
            tokio::task::spawn_local(async move {
                let _ = made.await;
                underway.borrow_mut().remove(&of);
            });
        }
        None
    }
}

/// Encodes a page. The second part is the memory it takes, in bytes.
fn make<const CODING: usize>(page: &Page, coding: Coding) -> (Kept<CODING>, usize) {
    let encoded = encode(coding, Effort::Kept, &page.body).ok();
    let smaller = encoded.filter(|encoded| encoded.len() < page.body.len());
    let variant = smaller.zip(page.head.as_ref()).map(|(mut encoded, head)| {
        encoded.shrink_to_fit();
        PageVariant { fields: variant_fields(head, coding), body: Bytes::from(encoded) }
    });
    let held = variant.as_ref().map_or(0, |variant| variant.body.len() + variant.fields.len_bytes() + 64);
    (Kept(variant), size_of::<Kept<CODING>>() + held)
}

/// The fields of a variant.
pub fn variant_fields(head: &PageHead, coding: Coding) -> FieldLines {
    coded_fields::coded(&head.fields, coding).prepare()
}
