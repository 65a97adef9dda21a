//! Asks the program of `auth_request` before the places of a route.

use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

use http::{Method, StatusCode};
use kirin_http::{
    Answer, Body, BodyLength, ClientWatch, Origin, RequestBody, RequestHead, RequestPath, Response,
    client_gone,
};
use kirin_workers::User;

use super::Router;
use super::description::{DESCRIPTION_NAMES, RequestDescription};
use crate::request::collected_body::collect;
use crate::request::context::{Request, SharedHead};
use crate::request::lineage::{Lineage, SubrequestRefusal};
use crate::routing::auth_request::{AuthRequest, Decision, Grant};
use crate::routing::route::Route;
use crate::routing::rules::Rules;

/// The longest body of an answer that is read to its end, in bytes, so that the connection to the
/// server can be used again.
const IGNORED_BODY_LIMIT: usize = 16 * 1024;

impl Router {
    /// Asks the places, if the program of the route lets the request pass.
    pub(super) fn ask_authorized(
        &self,
        route: &Route,
        rules: &Arc<Rules>,
        request: &Request<'_>,
    ) -> Answer {
        let Some(auth) = &rules.auth_request else {
            return self.ask_changed(route, rules, request);
        };
        match self.ask_authority(route, auth, request) {
            Answer::Now(response) => match auth.judge(response) {
                Decision::Pass(grant) => self.ask_granted(route, rules, auth, grant, request),
                Decision::Refuse(refusal) => Answer::Now(refusal),
            },
            Answer::Later(later) => {
                let (router, rules, kept) = (self.clone(), Arc::clone(rules), request.keep());
                let number = route.number;
                Answer::later(move |body| async move {
                    let routes = Rc::clone(&router.0);
                    let (Some(auth), Some(route)) =
                        (&rules.auth_request, routes.routes.get(number))
                    else {
                        return Response::error(StatusCode::INTERNAL_SERVER_ERROR);
                    };
                    // Nothing reads the body meanwhile, so its client can be watched.
                    let answer = later(RequestBody::empty());
                    let Some(mut response) = unless_gone(body.client(), answer).await else {
                        return Response::error(Response::client_gone_status());
                    };
                    if response.status.is_success() {
                        let ignored = std::mem::replace(&mut response.body, Body::Empty);
                        let _ = collect(ignored, IGNORED_BODY_LIMIT).await;
                    }
                    let grant = match auth.judge(response) {
                        Decision::Pass(grant) => grant,
                        Decision::Refuse(refusal) => return refusal,
                    };
                    let answer = kept
                        .with(|request| router.ask_granted(route, &rules, auth, grant, request));
                    answer.response(body).await
                })
            }
        }
    }

    /// Asks the program with the fields of the request, and without its body.
    fn ask_authority(&self, route: &Route, auth: &AuthRequest, request: &Request<'_>) -> Answer {
        let lineage = match request.lineage.child(None) {
            Ok(lineage) => lineage.with_given(DESCRIPTION_NAMES.clone()),
            Err(refusal) => return cannot_ask(auth, refusal),
        };
        let description = RequestDescription::of(request);
        let asked = request.with_subrequest(
            &Method::GET,
            auth.target.as_bytes(),
            &description.fields(),
            BodyLength::None,
            |head, origin| {
                let head = &RequestHead { host: description.host(), ..head.clone() };
                match &route.authority {
                    None => request.routes.ask(head, origin, &lineage),
                    Some(authority) => self.ask_place(authority, head, origin, &lineage, request),
                }
            },
        );
        asked.unwrap_or_else(|refusal| cannot_ask(auth, refusal))
    }

    /// Asks the place of a route that no path leads to.
    fn ask_place(
        &self,
        authority: &Route,
        head: &RequestHead<'_>,
        origin: Origin<'_>,
        lineage: &Lineage,
        request: &Request<'_>,
    ) -> Answer {
        let Ok(path) = RequestPath::parse(head.path) else {
            return Answer::Now(Response::error(StatusCode::INTERNAL_SERVER_ERROR));
        };
        let kept = SharedHead::new();
        let request =
            Request::new(head, origin, &path, request.namespace, lineage, request.routes, &kept);
        let answer = authority.ask_places(&authority.enter(request), 0);
        answer.unwrap_or_else(|| Answer::Now(Response::error(StatusCode::NOT_FOUND)))
    }

    /// Asks the places on behalf of a visitor who may pass.
    fn ask_granted(
        &self,
        route: &Route,
        rules: &Rules,
        auth: &AuthRequest,
        grant: Grant,
        request: &Request<'_>,
    ) -> Answer {
        let Grant { user, changes, response_fields } = grant;
        let user = user.as_deref().map(|name| User { name, auth_type: None });
        let request = Request { user: user.or(request.user), ..*request };
        let answer = request
            .with_given(&auth.fields, &changes, |request| self.ask_changed(route, rules, request));
        if response_fields.len_bytes() == 0 {
            return answer;
        }
        answer.map(move |mut response| {
            response.fields.append(&response_fields);
            response
        })
    }
}

/// Waits for an answer. Returns `None` if the client has disconnected before.
async fn unless_gone(
    client: Option<ClientWatch>,
    answer: impl Future<Output = Response>,
) -> Option<Response> {
    let (mut answer, mut gone) = (pin!(answer), pin!(client_gone(client.as_ref())));
    poll_fn(|context| {
        if let Poll::Ready(response) = answer.as_mut().poll(context) {
            return Poll::Ready(Some(response));
        }
        gone.as_mut().poll(context).map(|()| None)
    })
    .await
}

fn cannot_ask(auth: &AuthRequest, refusal: SubrequestRefusal) -> Answer {
    if !matches!(refusal, SubrequestRefusal::Cut { again: true }) {
        tracing::error!("auth_request: {auth} {refusal}");
    }
    Answer::Now(Response::error(StatusCode::INTERNAL_SERVER_ERROR))
}
