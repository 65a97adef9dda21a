//! Library functions of scripts, with any arguments. None runs much longer than the time limit of
//! its call, and none panics.
#![no_main]

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use kirin_http::request::{BodyLength, Version};
use kirin_http::{Client, ListenAddress, Method, Origin, Peer, RequestHead, RequestNotes};
use kirin_lua::{CallOutcome, Called, Limits, ScriptFile, Supply};
use kirin_origin::NearStore;
use kirin_store::{Namespace, Now, Store, StoreConfig};
use libfuzzer_sys::fuzz_target;

const NOW: Now = Now::from_unix_seconds(1_700_000_000);

/// The sanitizer makes the work between two looks at the clock several times as long.
const LIMIT: Duration = Duration::from_millis(50);

thread_local! {
    static SCRIPT: ScriptFile = {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/kirin-lua/tests/suite/support/functions.lua");
        let limits = Limits { time: LIMIT, memory_bytes: 32 << 20, body_bytes: 1 << 20 };
        let store = Arc::new(Store::new(StoreConfig::default()));
        ScriptFile::open(path.into(), NearStore::new(store, None), Rc::new(()), limits).expect("the script loads")
    };
}

/// Returns the processor time of this thread.
fn processor_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux has schedstat");
    Duration::from_nanos(
        text.split(' ').next().and_then(|time| time.parse().ok()).expect("a number"),
    )
}

fuzz_target!(|body: &[u8]| {
    let request = RequestHead {
        method: Method::POST,
        target: "/?a=b",
        path: "/",
        query: Some("a=b"),
        version: Version::Http11,
        host: "site.test",
        fields: &[],
        body: BodyLength::Exact(body.len() as u64),
        persistent: true,
        expects_continue: false,
    };
    let (peer, local) = (Peer::Unix, ListenAddress::Unix("x".into()));
    let notes = RequestNotes::default();
    let origin = Origin {
        peer: &peer,
        local: &local,
        secure: true,
        client: Client::NotRequested,
        proxy: None,
        now: 0,
        notes: &notes,
    };
    SCRIPT.with(|script| {
        let before = processor_time();
        let step =
            script.call(Called::of(&request, origin, b"/", None, &Namespace::default()), NOW);
        if let CallOutcome::Waiting(waiting) = step {
            let _ = waiting.resume(Supply::Body(body.to_vec().into()), NOW);
        }
        let took = processor_time() - before;
        assert!(took < 10 * LIMIT, "{took:?}");
    });
});
