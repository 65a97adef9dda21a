//! Coded variants of a page. They are made for the first request that accepts them, and kept beside
//! the item inside the budget of the store.
//!
//! A small page is compressed at once. A large one is compressed by a thread, and clients get it
//! uncoded until then. For a page with directives, the last assembly is kept, because it stays the
//! same until a part changes.

use std::cell::RefCell;
use std::collections::HashSet;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use kirin_compress::{Coding, Effort, INLINE_BYTES, encode};
use kirin_http::FieldLines;
use kirin_store::{ItemRef, Now, Store};
use parking_lot::Mutex;

use crate::filters::coded_fields;
use crate::filters::compress_threads::CompressThreads;
use crate::pages::page::{Page, PageHead};

/// A page in one coding.
#[derive(Clone)]
pub struct PageVariant {
    /// The fields of a 200 or 304.
    pub fields: FieldLines,
    /// The coded body.
    pub body: Bytes,
}

/// The companion of an item that is its variant in the coding of this index. `None` if the variant
/// would be no smaller. Each coding has a type of its own, as the store keeps one companion of a
/// type.
struct CodedVariant<const CODING: usize>(Option<PageVariant>);

/// The companion of an item that is the last assembly of its page, coded.
struct LastAssembly<const CODING: usize> {
    /// The bytes that count in the budget of the store for it. A longer one is not kept.
    room_bytes: usize,
    last: Mutex<KeptAssembly>,
}

/// A page with its parts, coded.
#[derive(Clone)]
pub struct KeptAssembly {
    /// The digest of everything in it.
    pub digest: u128,
    /// The coded body.
    pub body: Bytes,
}

/// A variant that a thread makes: the key of the item, and the coding.
type Underway = (Vec<u8>, Coding);

/// The variants that one loop is making.
#[derive(Default)]
pub struct PageVariants {
    underway: Rc<RefCell<HashSet<Underway>>>,
}

impl PageVariants {
    /// Returns the variant of `page`, which was compiled from `item`. Returns `None` if there is
    /// none yet, or it would be no smaller.
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
        if let Some(kept) = item.companion::<CodedVariant<CODING>>() {
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

/// Returns the assembly of the page in `item` with this digest, if it is the last one.
pub fn last_assembly(item: &ItemRef, coding: Coding, digest: u128) -> Option<Bytes> {
    let last = match coding.index() {
        0 => item.companion::<LastAssembly<0>>()?.last.lock().clone(),
        1 => item.companion::<LastAssembly<1>>()?.last.lock().clone(),
        _ => item.companion::<LastAssembly<2>>()?.last.lock().clone(),
    };
    (last.digest == digest).then_some(last.body)
}

/// Keeps `assembly` as the last one.
pub fn keep_assembly(
    store: &Store,
    item: &ItemRef,
    now: Now,
    coding: Coding,
    assembly: KeptAssembly,
) {
    match coding.index() {
        0 => keep_assembly_of::<0>(store, item, now, assembly),
        1 => keep_assembly_of::<1>(store, item, now, assembly),
        _ => keep_assembly_of::<2>(store, item, now, assembly),
    }
}

fn keep_assembly_of<const CODING: usize>(
    store: &Store,
    item: &ItemRef,
    now: Now,
    assembly: KeptAssembly,
) {
    // The item is as it was found. The store may have a companion of it by now.
    let kept = store.companion(item, now, |_| {
        // Parts change, and the next page is seldom exactly as long.
        let room_bytes = assembly.body.len() + assembly.body.len() / 4;
        let last = Mutex::new(assembly.clone());
        let kept = LastAssembly::<CODING> { room_bytes, last };
        (kept, size_of::<LastAssembly<CODING>>() + room_bytes + 64)
    });
    let mut last = kept.last.lock();
    if last.digest != assembly.digest && assembly.body.len() <= kept.room_bytes {
        *last = assembly;
    }
}

/// Encodes a page. The second part is the memory it takes, in bytes.
fn make<const CODING: usize>(page: &Page, coding: Coding) -> (CodedVariant<CODING>, usize) {
    let encoded = encode(coding, Effort::Kept, &page.body).ok();
    let smaller = encoded.filter(|encoded| encoded.len() < page.body.len());
    let variant = smaller.zip(page.head.as_ref()).map(|(mut encoded, head)| {
        encoded.shrink_to_fit();
        PageVariant { fields: variant_fields(head, coding), body: Bytes::from(encoded) }
    });
    let held =
        variant.as_ref().map_or(0, |variant| variant.body.len() + variant.fields.len_bytes() + 64);
    (CodedVariant(variant), size_of::<CodedVariant<CODING>>() + held)
}

/// Returns the fields of a variant.
pub fn variant_fields(head: &PageHead, coding: Coding) -> FieldLines {
    coded_fields::coded(&head.fields, coding).prepare()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kirin_store::{NewItem, StoreConfig};

    const NOW: Now = Now::from_unix_seconds(1_000);

    fn stored(page: &str) -> (Arc<Store>, ItemRef, Arc<Page>) {
        let store = Arc::new(Store::new(StoreConfig::default()));
        assert!(store.set(b"/p", NewItem::new(page.as_bytes()), NOW).is_stored());
        let item = store.get(b"/p", NOW).unwrap();
        let page = store.companion::<Page>(&item, NOW, Page::compile);
        (store, item, page)
    }

    #[test]
    fn a_variant_is_made_once_and_counted_in_the_budget() {
        let (store, item, page) = stored(&format!("text/html\r\n{}", "<p>hello</p>".repeat(500)));
        let variants = PageVariants::default();
        let mut used = store.used_bytes();
        for coding in Coding::ALL {
            let get = |item| {
                variants.get(&store, item, &page, coding, NOW, &CompressThreads::default()).unwrap()
            };
            let made = get(&item);
            assert_eq!(made.fields.get("content-encoding"), Some(coding.name().as_bytes()));
            assert!(store.used_bytes() >= used + made.body.len(), "{coding:?}");
            used = store.used_bytes();
            let kept = get(&store.get(b"/p", NOW).unwrap());
            assert_eq!(
                (kept.body.as_ptr(), store.used_bytes()),
                (made.body.as_ptr(), used),
                "{coding:?}"
            );
        }
        store.delete(b"/p", NOW);
        assert!(store.used_bytes() < used - 1000);
    }

    #[test]
    fn a_body_that_compression_does_not_shrink_is_tried_once() {
        let (store, item, page) = stored("text/html\r\n0");
        let variants = PageVariants::default();
        let get = |item| {
            variants.get(&store, item, &page, Coding::Gzip, NOW, &CompressThreads::default())
        };
        assert!(get(&item).is_none());
        let item = store.get(b"/p", NOW).unwrap();
        assert!(item.companion::<CodedVariant<2>>().is_some_and(|kept| kept.0.is_none()));
        assert!(get(&item).is_none());
    }

    #[test]
    fn the_last_assembly_takes_no_more_room_than_was_counted() {
        let (store, item, _) = stored("text/html\r\n<!--# include a -->");
        let assembly =
            |digest, length| KeptAssembly { digest, body: Bytes::from(vec![b'x'; length]) };
        let length = |digest| {
            let item = store.get(b"/p", NOW).unwrap();
            last_assembly(&item, Coding::Zstd, digest).map(|body| body.len())
        };
        assert_eq!(length(1), None);
        let used = store.used_bytes();
        keep_assembly(&store, &item, NOW, Coding::Zstd, assembly(1, 1000));
        assert!(store.used_bytes() >= used + 1250);
        assert_eq!((length(1), length(2)), (Some(1000), None));
        let used = store.used_bytes();
        // The item that this reader holds is an older one.
        keep_assembly(&store, &item, NOW, Coding::Zstd, assembly(2, 1250));
        assert_eq!((length(1), length(2)), (None, Some(1250)));
        keep_assembly(&store, &item, NOW, Coding::Zstd, assembly(3, 1251));
        assert_eq!((length(2), length(3)), (Some(1250), None));
        assert_eq!(store.used_bytes(), used);
        assert_eq!(last_assembly(&store.get(b"/p", NOW).unwrap(), Coding::Gzip, 2), None);
    }
}
