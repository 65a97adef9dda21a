//! Scripts without a server: a directory, a store, requests and their results.

use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use kirin_http::request::{BodyLength, Version};
use kirin_http::{
    Body, Client, ListenAddress, Method, Origin, Peer, RequestHead, RequestNotes, Response,
};
use kirin_lua::{CallOutcome, Called, Fault, Limits, LuaError, ScriptFile};
use kirin_origin::NearStore;
use kirin_store::{Namespace, Now, Store, StoreConfig};
use tempfile::TempDir;

pub const NOW: Now = Now::from_unix_seconds(1_700_000_000);

pub struct Site {
    pub directory: TempDir,
    pub store: Arc<Store>,
    pub limits: Limits,
}

impl Site {
    pub fn new() -> Self {
        let limits =
            Limits { time: Duration::from_secs(10), memory_bytes: 32 << 20, body_bytes: 1 << 20 };
        Self {
            directory: TempDir::new().unwrap(),
            store: Arc::new(Store::new(StoreConfig::default())),
            limits,
        }
    }

    pub fn write(&self, name: &str, source: &str) -> PathBuf {
        let path = self.directory.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, source).unwrap();
        path
    }

    pub fn open(&self, source: &str) -> Result<ScriptFile, LuaError> {
        let path = self.write("page.lua", source);
        ScriptFile::open(
            path,
            NearStore::new(Arc::clone(&self.store), None),
            Rc::new(()),
            self.limits,
        )
    }

    /// Opens a script whose function has this body.
    pub fn handler(&self, body: &str) -> ScriptFile {
        self.open(&format!("return function(request)\n{body}\nend")).unwrap()
    }
}

pub fn called(method: Method, target: &str, fields: &[(&str, &str)], body: BodyLength) -> Called {
    let fields: Vec<_> = fields
        .iter()
        .map(|(name, value)| httparse::Header { name, value: value.as_bytes() })
        .collect();
    let (path, query) =
        target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
    let request = RequestHead {
        method,
        target,
        path,
        query,
        version: Version::Http11,
        host: "site.test",
        fields: &fields,
        body,
        persistent: true,
        expects_continue: false,
    };
    let (peer, local) =
        (Peer::Tcp("192.0.2.7:1234".parse().unwrap()), ListenAddress::Unix("x".into()));
    let origin = Origin {
        peer: &peer,
        local: &local,
        secure: true,
        client: Client::NotRequested,
        proxy: None,
        now: 0,
        notes: &RequestNotes::default(),
    };
    Called::of(&request, origin, path.as_bytes(), None, &Namespace::default())
}

pub fn get(target: &str) -> Called {
    called(Method::GET, target, &[], BodyLength::None)
}

pub fn answered(step: CallOutcome) -> Response {
    match step {
        CallOutcome::Answered(response) => response,
        CallOutcome::Passed => panic!("passed"),
        CallOutcome::Failed(fault) => panic!("failed: {fault:?}"),
        CallOutcome::Waiting(_) => panic!("waits"),
    }
}

pub fn fault(step: CallOutcome) -> Fault {
    match step {
        CallOutcome::Failed(fault) => fault,
        CallOutcome::Answered(response) => panic!("answered {response:?} {}", text(&response)),
        CallOutcome::Passed => panic!("passed"),
        CallOutcome::Waiting(_) => panic!("waits"),
    }
}

pub fn bytes(response: &Response) -> Vec<u8> {
    match &response.body {
        Body::Empty => Vec::new(),
        Body::Bytes(bytes) => bytes.to_vec(),
        Body::Segments(segments) => segments.concat(),
        other => panic!("{other:?}"),
    }
}

pub fn text(response: &Response) -> String {
    String::from_utf8_lossy(&bytes(response)).into_owned()
}

/// Returns what a function with this body answers.
pub fn says(body: &str) -> String {
    text(&answered(Site::new().handler(body).call(get("/"), NOW)))
}
