//! A request that outlives the connection's read buffer, for an answer that must wait.

use std::num::NonZeroU64;
use std::rc::Rc;

use httparse::Header;
use kirin_http::request::{BodyLength, RequestHead, Version};
use kirin_http::request_path::{RequestPath, ResolvedPath};
use kirin_http::{
    Client, ClientCertificate, ForwardedFields, ListenAddress, Method, Origin, Peer, RequestNotes,
    TrustedProxy,
};
use kirin_ssi::Syntax;
use kirin_store::Namespace;
use kirin_workers::User;

use super::answers::Answers;
use super::context::{ChangedHead, Request, SharedHead};
use super::field_changes::{FieldChange, apply};
use super::given_names::GivenNames;
use super::lineage::Lineage;
use crate::routing::protection::Protection;

/// A copy of a request head as it was sent, and of its origin.
pub struct KeptHead {
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
    notes: RequestNotes,
}

/// A copy of what the client has shown in the TLS handshake.
enum KeptClient {
    NotRequested,
    Anonymous,
    Verified(ClientCertificate),
}

impl KeptHead {
    /// Copies a head that no route has changed yet.
    pub fn new(request: &RequestHead<'_>, origin: Origin<'_>) -> Self {
        Self::copy(request, request.fields, origin)
    }

    /// Calls `work` with the head as it was sent, and with its origin.
    pub fn with<R>(&self, work: impl FnOnce(&RequestHead<'_>, Origin<'_>) -> R) -> R {
        work(&self.head(&self.fields()), self.origin())
    }

    /// Copies the head, with these fields, so that it outlives the connection's buffer.
    fn copy(request: &RequestHead<'_>, fields: &[Header<'_>], origin: Origin<'_>) -> Self {
        let fields = fields.iter();
        Self {
            method: request.method.clone(),
            target: request.target.into(),
            path: request.path.into(),
            query: request.query.map(Into::into),
            host: request.host.into(),
            fields: fields.map(|field| (field.name.into(), field.value.into())).collect(),
            version: request.version,
            body: request.body,
            persistent: request.persistent,
            expects_continue: request.expects_continue,
            peer: origin.peer.clone(),
            local: origin.local.clone(),
            secure: origin.secure,
            client: match origin.client {
                Client::NotRequested => KeptClient::NotRequested,
                Client::Anonymous => KeptClient::Anonymous,
                Client::Verified(certificate) => KeptClient::Verified(certificate.clone()),
            },
            proxy: origin.proxy.map(|proxy| (proxy.peer.clone(), proxy.fields.clone())),
            now: origin.now,
            notes: origin.notes.share(),
        }
    }

    fn fields(&self) -> Vec<Header<'_>> {
        self.fields.iter().map(|(name, value)| Header { name, value }).collect()
    }

    fn head<'a>(&'a self, fields: &'a [Header<'a>]) -> RequestHead<'a> {
        RequestHead {
            method: self.method.clone(),
            target: &self.target,
            path: &self.path,
            query: self.query.as_deref(),
            version: self.version,
            host: &self.host,
            fields,
            body: self.body,
            persistent: self.persistent,
            expects_continue: self.expects_continue,
        }
    }

    fn origin(&self) -> Origin<'_> {
        let client = match &self.client {
            KeptClient::NotRequested => Client::NotRequested,
            KeptClient::Anonymous => Client::Anonymous,
            KeptClient::Verified(certificate) => Client::Verified(certificate),
        };
        let proxy = self.proxy.as_ref().map(|(peer, fields)| TrustedProxy { peer, fields });
        let (secure, now) = (self.secure, self.now);
        Origin {
            peer: &self.peer,
            local: &self.local,
            secure,
            client,
            proxy,
            now,
            notes: &self.notes,
        }
    }
}

/// A [`Request`] that outlives the connection's read buffer. All copies of the same request share
/// the copy of the head.
pub struct KeptRequest {
    head: Rc<KeptHead>,
    changes: Vec<FieldChange>,
    changes_of_rules: usize,
    /// Target and path that the route has rewritten.
    rewritten: Option<(String, String)>,
    /// The path of the rewritten head, resolved.
    path: Option<ResolvedPath>,
    /// The path that was sent, resolved.
    sent_path: Option<ResolvedPath>,
    script_name: Vec<u8>,
    path_info: Option<String>,
    user: Option<(String, Option<&'static str>)>,
    given: GivenNames,
    value_digest: Option<NonZeroU64>,
    syntax: Syntax,
    protection: Protection,
    namespace: Namespace,
    lineage: Lineage,
    routes: Rc<dyn Answers>,
}

impl Request<'_> {
    /// Keeps the request for an answer that must wait. The head is copied the first time only.
    pub fn keep(&self) -> KeptRequest {
        let ChangedHead { copy, fields, changes, changes_of_rules } = self.kept;
        let head = copy.get_or_init(|| Rc::new(KeptHead::copy(self.head, fields, self.origin)));
        KeptRequest {
            head: Rc::clone(head),
            changes: changes.to_vec(),
            changes_of_rules,
            rewritten: self
                .is_rewritten()
                .then(|| (self.rewritten.target.into(), self.rewritten.path.into())),
            path: self.path.resolved().cloned(),
            sent_path: self.sent_path.resolved().cloned(),
            script_name: self.script_name.into(),
            path_info: self.path_info.map(Into::into),
            user: self.user.map(|user| (user.name.into(), user.auth_type)),
            given: self.given.clone(),
            value_digest: self.value_digest,
            syntax: self.syntax,
            protection: self.protection,
            namespace: self.namespace.clone(),
            lineage: self.lineage.keep(),
            routes: self.routes.shared(),
        }
    }
}

impl KeptRequest {
    /// Returns the notes about the request.
    pub fn notes(&self) -> &RequestNotes {
        &self.head.notes
    }

    /// Calls `work` with the request as it was when it was kept.
    pub fn with<R>(&self, work: impl FnOnce(&Request<'_>) -> R) -> R {
        let fields = self.head.fields();
        let sent = self.head.head(&fields);
        let mut changed_fields = Vec::new();
        let mut head = sent.clone();
        if !self.changes.is_empty() {
            changed_fields.clone_from(&fields);
            apply(&self.changes, &mut changed_fields);
            head.fields = &changed_fields;
        }
        let mut fields_of_rules = Vec::new();
        let mut rewritten = match &self.rewritten {
            Some((target, path)) => RequestHead { target, path, ..sent },
            None => sent,
        };
        if self.changes_of_rules > 0 {
            fields_of_rules.clone_from(&fields);
            apply(&self.changes[..self.changes_of_rules], &mut fields_of_rules);
            rewritten.fields = &fields_of_rules;
        }
        let copy = SharedHead::from(Rc::clone(&self.head));
        let path = RequestPath::from_resolved(rewritten.path, self.path.as_ref());
        let sent_path = RequestPath::from_resolved(head.path, self.sent_path.as_ref());
        work(&Request {
            head: &head,
            origin: self.head.origin(),
            path: &path,
            sent_path: &sent_path,
            rewritten: &rewritten,
            script_name: &self.script_name,
            path_info: self.path_info.as_deref(),
            user: self.user.as_ref().map(|(name, auth_type)| User { name, auth_type: *auth_type }),
            given: &self.given,
            value_digest: self.value_digest,
            syntax: self.syntax,
            protection: self.protection,
            namespace: &self.namespace,
            lineage: &self.lineage,
            routes: &*self.routes,
            kept: ChangedHead {
                copy: &copy,
                fields: &fields,
                changes: &self.changes,
                changes_of_rules: self.changes_of_rules,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;
    use crate::request::test_requests::with_request;

    const MARI: User<'static> = User { name: "mari", auth_type: Some("Basic") };

    fn lines(request: &Request<'_>) -> Vec<String> {
        let line = |field: &Header<'_>| {
            format!("{}: {}", field.name, String::from_utf8_lossy(field.value))
        };
        request.head.fields.iter().map(line).collect()
    }

    #[test]
    fn all_who_wait_share_one_copy_of_the_head() {
        let changes = [
            FieldChange::Remove("range"),
            FieldChange::Add("Accept-Encoding", Cow::Borrowed(b"identity")),
        ];
        with_request("GET /a?b HTTP/1.1\r\nHost: h\r\nRange: bytes=0-", |request| {
            let (changed, inner) = request.with_changes(&changes, |request| {
                let kept = request.keep();
                let inner = kept.with(|request| request.keep().head);
                (kept, inner)
            });
            let outer = request.keep();
            assert!(Rc::ptr_eq(&changed.head, &outer.head) && Rc::ptr_eq(&inner, &outer.head));
            assert_eq!(changed.with(lines), ["Host: h", "Accept-Encoding: identity"]);
            assert_eq!(outer.with(lines), ["Host: h", "Range: bytes=0-"]);
        });
    }

    #[test]
    fn a_kept_request_is_as_it_was() {
        with_request("GET /a?b HTTP/1.1\r\nHost: h", |request| {
            let rewritten = RequestHead { target: "/x/a?b", path: "/x/a", ..request.head.clone() };
            let path = RequestPath::parse(rewritten.path).unwrap();
            let kept = Request {
                rewritten: &rewritten,
                path: &path,
                script_name: b"/s",
                path_info: Some("/i"),
                user: Some(MARI),
                ..*request
            };
            kept.keep().with(|request| {
                assert_eq!((request.head.path, request.head.query), ("/a", Some("b")));
                assert_eq!(
                    (request.rewritten.target, request.path.normalized()),
                    ("/x/a?b", &b"/x/a"[..])
                );
                assert_eq!((request.script_name, request.path_info), (&b"/s"[..], Some("/i")));
                assert_eq!((request.user, request.origin.now), (Some(MARI), 7));
                assert!(request.is_rewritten());
            });
        });
    }
}
