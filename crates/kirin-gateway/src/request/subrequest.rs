//! Subrequests: requests for the parts of a page, and requests that a script makes. The routes
//! answer them as they answer a client.
//!
//! A subrequest needs no connection and no task. An answer from memory is there at once.
//!
//! Pages use GET without a body. Scripts choose the method and the body. The visitor's cookies and
//! other fields go with the request. Fields about the parent's own response do not (conditions,
//! ranges, codings). As in nginx, rate limits count the visitor's request alone. As in Apache, a
//! subrequest needs the password of its route too: the names of a page's parts may come from
//! visitors.

use std::rc::Rc;
use std::time::Instant;

use http::Method;
use httparse::Header;
use kirin_http::percent::{self, AsciiSet, CONTROLS};
use kirin_http::{Answer, BodyLength, Origin, RequestHead};

use super::context::Request;
use super::given_names::is_of_connection;
use super::lineage::{Lineage, SharedVariables, SubrequestRefusal};

/// The longest target, in bytes: as long as the longest request line by default.
const MAX_TARGET_BYTES: usize = 8 * 1024;

impl Request<'_> {
    /// Asks the routes for `target`, a path and perhaps a query, on behalf of a page with these
    /// variables. A relative path starts at the directory of this request's path. Bytes that a
    /// target must not contain are percent-encoded.
    pub fn get(
        &self,
        target: &[u8],
        variables: &Rc<SharedVariables>,
    ) -> Result<Answer, SubrequestRefusal> {
        let lineage = self.lineage.child(Some(variables))?;
        self.ask_as(&lineage, &Method::GET, target, &[], BodyLength::None)
    }

    /// Asks the routes with a method, with `others` in place of the visitor's fields of the same
    /// names, and with a body, which the answer reads.
    pub fn ask(
        &self,
        method: &Method,
        target: &[u8],
        others: &[Header<'_>],
        body: BodyLength,
    ) -> Result<Answer, SubrequestRefusal> {
        self.ask_as(&self.lineage.child(None)?, method, target, others, body)
    }

    fn ask_as(
        &self,
        lineage: &Lineage,
        method: &Method,
        target: &[u8],
        others: &[Header<'_>],
        body: BodyLength,
    ) -> Result<Answer, SubrequestRefusal> {
        self.with_subrequest(method, target, others, body, |head, origin| {
            self.routes.ask(head, origin, lineage)
        })
    }

    /// Calls `ask` with the head of a subrequest, which has `others` in place of the visitor's
    /// fields of the same names.
    pub fn with_subrequest(
        &self,
        method: &Method,
        target: &[u8],
        others: &[Header<'_>],
        body: BodyLength,
        ask: impl FnOnce(&RequestHead<'_>, Origin<'_>) -> Answer,
    ) -> Result<Answer, SubrequestRefusal> {
        let target = absolute_target(self.head.path, target).ok_or(SubrequestRefusal::Target)?;
        let (path, query) = match target.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (&target[..], None),
        };
        let is_other = |field: &Header<'_>| {
            others.iter().any(|other| other.name.eq_ignore_ascii_case(field.name))
        };
        let mut fields: Vec<_> = self.head.fields.to_vec();
        fields.retain(|field| is_kept(field.name) && !is_other(field));
        fields.extend(others.iter().filter(|other| !is_of_connection(other.name)));
        // A request without this field accepts any coding.
        fields.push(Header { name: "Accept-Encoding", value: b"identity" });
        let head = RequestHead {
            method: method.clone(),
            target: &target,
            path,
            query,
            version: self.head.version,
            host: self.head.host,
            fields: &fields,
            body,
            persistent: true,
            expects_continue: false,
        };
        let (notes, started) = (self.origin.notes.of_part(), Instant::now());
        let origin = Origin { notes: &notes, ..self.origin };
        let answer = ask(&head, origin);
        // A part that is in memory takes no time worth a note.
        if let Some(parts) = notes.steps_so_far() {
            self.origin.notes.steps().add_part(path.into(), started, Rc::clone(parts));
        }
        Ok(answer)
    }
}

/// Returns whether a field of the parent goes with its subrequests.
pub fn is_kept(name: &str) -> bool {
    let about_response = [
        "range",
        "accept-encoding",
        "te",
        "expect",
        "upgrade",
        "connection",
        "keep-alive",
        "trailer",
    ];
    let begins = |prefix: &str| {
        name.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
    };
    !begins("if-")
        && !begins("content-")
        && !begins("transfer-")
        && !about_response.iter().any(|other| name.eq_ignore_ascii_case(other))
}

/// The bytes that the target of a request line must not contain.
const NOT_IN_REQUEST_LINE: &AsciiSet = &CONTROLS.add(b' ').add(b'#');

/// Returns `target` in the form of a request line; a relative one is resolved in the directory of
/// `path`.
fn absolute_target(path: &str, target: &[u8]) -> Option<String> {
    let directory = match target.first()? {
        b'/' => "",
        _ => &path[..=path.rfind('/')?],
    };
    if target.len() > MAX_TARGET_BYTES {
        return None;
    }
    let mut absolute = directory.to_owned();
    absolute.push_str(&percent::encode(target, NOT_IN_REQUEST_LINE));
    Some(absolute)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_made_absolute_and_sendable() {
        for (path, target, absolute) in [
            ("/a/b", "/c?d=e", Some("/c?d=e")),
            ("/a/b", "c", Some("/a/c")),
            ("/a/", "c/d", Some("/a/c/d")),
            ("/a", "../c", Some("/../c")),
            ("/", "c d\r\nX: y#f", Some("/c%20d%0D%0AX:%20y%23f")),
            ("/", "/é%20", Some("/%C3%A9%20")),
            ("/", "http://other/", Some("/http://other/")),
            ("/", "", None),
            ("*", "c", None),
        ] {
            assert_eq!(
                absolute_target(path, target.as_bytes()).as_deref(),
                absolute,
                "{path} {target}"
            );
        }
    }

    #[test]
    fn fields_about_the_parents_own_response_stay_with_it() {
        for (name, kept) in [
            ("Cookie", true),
            ("Authorization", true),
            ("Host", true),
            ("X-Ifs", true),
            ("If-None-Match", false),
            ("if-match", false),
            ("Range", false),
            ("Accept-Encoding", false),
            ("Content-Length", false),
            ("Transfer-Encoding", false),
            ("Connection", false),
            ("Upgrade", false),
        ] {
            assert_eq!(is_kept(name), kept, "{name}");
        }
    }
}
