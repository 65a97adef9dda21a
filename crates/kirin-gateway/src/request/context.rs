//! The context of a request: its head, and what its route adds to it on the way to a place.

use std::cell::OnceCell;
use std::num::NonZeroU64;
use std::rc::Rc;

use httparse::Header;
use kirin_http::{Origin, RequestHead, RequestPath};
use kirin_ssi::Syntax;
use kirin_store::Namespace;
use kirin_workers::User;

use super::answers::Answers;
use super::field_changes::{FieldChange, apply};
use super::given_names::GivenNames;
use super::kept_request::KeptHead;
use super::lineage::Lineage;
use crate::routing::protection::Protection;
use crate::routing::variables::RequestValues;

/// A copy of a head. The first part of the program that must wait makes it, and all share it.
pub type SharedHead = OnceCell<Rc<KeptHead>>;

/// A request as routes, filters and places get it. All of it is borrowed: a request that is
/// answered at once is never copied.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// The head as the client sent it, with the changes that filters made to its fields.
    pub head: &'a RequestHead<'a>,
    /// The client, the listener and the time in seconds.
    pub origin: Origin<'a>,
    /// The path of `rewritten`.
    pub path: &'a RequestPath<'a>,
    /// The path of `head`.
    pub sent_path: &'a RequestPath<'a>,
    /// The head as the client sent it, with the path that `rewrite` gives it. All places but
    /// applications look there. Without a `rewrite` it is the head as it was sent.
    pub rewritten: &'a RequestHead<'a>,
    /// `SCRIPT_NAME` for applications: the decoded path below which they are mounted.
    pub script_name: &'a [u8],
    /// The percent-encoded path of which `PATH_INFO` is made, if a `rewrite` changes it.
    pub path_info: Option<&'a str>,
    /// The visitor whom the route has authenticated.
    pub user: Option<User<'a>>,
    /// The names of the fields of `head` that a rule has set, and not the client.
    pub given: &'a GivenNames,
    /// A number for the values of variables that places get, if they are not of the target. Cached
    /// responses depend on them.
    pub value_digest: Option<NonZeroU64>,
    /// The directives that the route carries out in what files and code answer.
    pub syntax: Syntax,
    /// The conditions that the request has passed. Pages of the store may depend on them.
    pub protection: Protection,
    /// The part of the store that belongs to its site.
    pub namespace: &'a Namespace,
    /// The position below a client's request, if it is not a client's own.
    pub lineage: &'a Lineage,
    /// The routes, for subrequests.
    pub routes: &'a dyn Answers,
    /// The copy of the head, for those who must wait.
    pub kept: ChangedHead<'a>,
}

/// The copy of a head as it was before filters changed it, and their changes.
#[derive(Clone, Copy)]
pub struct ChangedHead<'a> {
    /// The copy, once it is made.
    pub(super) copy: &'a SharedHead,
    /// The fields of the head before `changes`.
    pub(super) fields: &'a [Header<'a>],
    /// The changes that rules and filters made to the fields.
    pub(super) changes: &'a [FieldChange],
    /// The number of the first of them that rules made. They are also made in the rewritten head.
    pub(super) changes_of_rules: usize,
}

impl<'a> Request<'a> {
    /// Creates a request as it was sent, before a route is known. `path` is its path, `namespace`
    /// that of its site, `kept` an empty cell for the copy of its head.
    pub fn new(
        head: &'a RequestHead<'a>,
        origin: Origin<'a>,
        path: &'a RequestPath<'a>,
        namespace: &'a Namespace,
        lineage: &'a Lineage,
        routes: &'a dyn Answers,
        kept: &'a SharedHead,
    ) -> Self {
        Self {
            head,
            origin,
            path,
            sent_path: path,
            rewritten: head,
            script_name: b"",
            path_info: None,
            user: None,
            given: lineage.given(),
            value_digest: None,
            syntax: Syntax::default(),
            protection: Protection::default(),
            namespace,
            lineage,
            routes,
            kept: ChangedHead {
                copy: kept,
                fields: head.fields,
                changes: &[],
                changes_of_rules: 0,
            },
        }
    }

    /// Returns the request as variables of the configuration see it: as the client sent it.
    pub fn values(&self) -> RequestValues<'a> {
        let user = self.user.map(|user| user.name);
        RequestValues { head: self.head, path: self.sent_path, origin: self.origin, user }
    }

    /// Returns whether the route has rewritten the path.
    pub fn is_rewritten(&self) -> bool {
        self.rewritten.path != self.head.path || self.rewritten.target != self.head.target
    }

    /// Calls `work` with this request after `changes` to the fields of its head.
    pub fn with_changes<R>(
        &self,
        changes: &[FieldChange],
        work: impl FnOnce(&Request<'_>) -> R,
    ) -> R {
        let mut fields = self.head.fields.to_vec();
        apply(changes, &mut fields);
        let head = RequestHead { fields: &fields, ..self.head.clone() };
        let earlier = self.kept.changes;
        let all;
        let changes = match earlier {
            [] => changes,
            _ => {
                all = [earlier, changes].concat();
                &all
            }
        };
        work(&Request { head: &head, kept: ChangedHead { changes, ..self.kept }, ..*self })
    }

    /// Calls `work` with this request after `changes`, which set the fields with these names or
    /// remove them. All places see them, also in the rewritten head.
    pub fn with_given<R>(
        &self,
        names: &GivenNames,
        changes: &[FieldChange],
        work: impl FnOnce(&Request<'_>) -> R,
    ) -> R {
        let given = self.given.and(names);
        self.with_changes(changes, |request| {
            let kept = ChangedHead { changes_of_rules: request.kept.changes.len(), ..request.kept };
            let rewritten = RequestHead { fields: request.head.fields, ..self.rewritten.clone() };
            work(&Request { given: &given, rewritten: &rewritten, kept, ..*request })
        })
    }

    /// Calls `work` with this request under another head, which is copied for itself if that must
    /// wait.
    pub fn with_head<R>(&self, head: &RequestHead<'_>, work: impl FnOnce(&Request<'_>) -> R) -> R {
        let copy = SharedHead::new();
        let kept =
            ChangedHead { copy: &copy, fields: head.fields, changes: &[], changes_of_rules: 0 };
        work(&Request { head, kept, ..*self })
    }
}
