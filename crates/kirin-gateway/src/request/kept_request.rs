//! A request that outlives the connection's read buffer, for when an answer begins with waiting: a
//! password check.
//!
//! A copy of the head; taken only then.

use kirin_http::request::{BodyLength, RequestHead, Version};
use kirin_http::{
    Client, ClientCertificate, ForwardedFields, ListenAddress, Method, Origin, Peer, TrustedProxy,
};

/// A request head and where it came from.
pub struct KeptRequest {
    method: Method,
    target: String,
    path: String,
    query: Option<String>,
    host: String,
    fields: Vec<(String, Vec<u8>)>,
    version: Version,
    body: BodyLength,
    persistent: bool,
    expects_continue: bool,
    peer: Peer,
    local: ListenAddress,
    secure: bool,
    client: KeptClient,
    proxy: Option<(Peer, ForwardedFields)>,
    now: u64,
}

/// What the client has shown.
enum KeptClient {
    NotAsked,
    Anonymous,
    Verified(ClientCertificate),
}

impl KeptRequest {
    /// Copies.
    pub fn of(request: &RequestHead<'_>, origin: Origin<'_>) -> Self {
        Self {
            method: request.method.clone(),
            target: request.target.into(),
            path: request.path.into(),
            query: request.query.map(Into::into),
            host: request.host.into(),
            fields: request
                .fields
                .iter()
                .map(|field| (field.name.into(), field.value.into()))
                .collect(),
            version: request.version,
            body: request.body,
            persistent: request.persistent,
            expects_continue: request.expects_continue,
            peer: origin.peer.clone(),
            local: origin.local.clone(),
            secure: origin.secure,
            client: match origin.client {
                Client::NotAsked => KeptClient::NotAsked,
                Client::Anonymous => KeptClient::Anonymous,
                Client::Verified(certificate) => KeptClient::Verified(certificate.clone()),
            },
            proxy: origin.proxy.map(|proxy| (proxy.peer.clone(), proxy.fields)),
            now: origin.now,
        }
    }

    /// Has `work` look at it again.
    pub fn with<R>(&self, work: impl FnOnce(&RequestHead<'_>, Origin<'_>) -> R) -> R {
        let fields: Vec<_> =
            self.fields.iter().map(|(name, value)| httparse::Header { name, value }).collect();
        let request = RequestHead {
            method: self.method.clone(),
            target: &self.target,
            path: &self.path,
            query: self.query.as_deref(),
            version: self.version,
            host: &self.host,
            fields: &fields,
            body: self.body,
            persistent: self.persistent,
            expects_continue: self.expects_continue,
        };
        let client = match &self.client {
            KeptClient::NotAsked => Client::NotAsked,
            KeptClient::Anonymous => Client::Anonymous,
            KeptClient::Verified(certificate) => Client::Verified(certificate),
        };
        let proxy =
            self.proxy.as_ref().map(|(peer, fields)| TrustedProxy { peer, fields: *fields });
        let (secure, now) = (self.secure, self.now);
        work(&request, Origin { peer: &self.peer, local: &self.local, secure, client, proxy, now })
    }
}
