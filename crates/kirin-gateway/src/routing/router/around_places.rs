//! The rules of a route around its places: `deny`, `allow`, `maintenance`, `rate_limit`,
//! `redirects`, `redirect`, `basic_auth`, `auth_request` and `rewrite` before them, `error_pages`
//! and `headers` after them.

use std::sync::Arc;
use std::time::Instant;

use http::StatusCode;
use kirin_http::{Answer, FieldLines, RequestBody, RequestHead, RequestPath, Response};
use kirin_workers::User;

use super::Router;
use crate::request::context::Request;
use crate::routing::access::{Maintenance, Refusal};
use crate::routing::basic_auth::{Admission, BasicAuth};
use crate::routing::route::Route;
use crate::routing::rules::Rules;

impl Router {
    /// Answers by a route that an operator holds in maintenance. Returns `None` for another route.
    #[cold]
    pub(super) fn answer_in_maintenance(
        &self,
        route: &Route,
        request: &Request<'_>,
    ) -> Option<Answer> {
        let maintenance = self.0.maintenance.of(route.note.number?)?;
        let rules = route.rules.clone().unwrap_or_default();
        Some(self.answer_by_rules(route, &rules, Some(&maintenance), request))
    }

    /// Answers by a route that has rules. `by_operator` is maintenance that an operator has begun.
    pub(super) fn answer_by_rules(
        &self,
        route: &Route,
        rules: &Arc<Rules>,
        by_operator: Option<&Maintenance>,
        request: &Request<'_>,
    ) -> Answer {
        let client = request.origin.peer;
        let by_operator = || by_operator?.refuse(client);
        // Whoever may purge may also purge what nobody may see.
        let refusal = rules.access.refuse(client).or_else(by_operator);
        let refusal = refusal
            .filter(|_| !self.0.purge_requests.is_purge(request.head, request.origin))
            .or_else(|| {
                let is_counted = rules.has_limits() && !request.lineage.is_subrequest();
                is_counted.then(|| rules.refuse_excess(&request.values(), Instant::now()))?
            });
        if let Some(Refusal { response, page }) = refusal {
            return self.finish_with_page(rules, response, page, request);
        }
        let redirected = rules.redirect(&request.values(), &route.path);
        let answer = match (redirected, &rules.basic_auth) {
            (Some(response), _) => Answer::Now(response),
            (None, None) => self.ask_authorized(route, rules, request),
            (None, Some(basic_auth)) => self.ask_with_password(route, rules, basic_auth, request),
        };
        match answer {
            Answer::Now(response) => self.finish(rules, response, request),
            Answer::Later(later) if !rules.change_responses() => Answer::Later(later),
            Answer::Later(later)
                if rules.error_pages.is_empty() && !rules.response_fields.has_variables() =>
            {
                let rules = Arc::clone(rules);
                Answer::later(move |body| async move {
                    let mut response = later(body).await;
                    rules.response_fields.apply(&mut response, &FieldLines::new());
                    response
                })
            }
            Answer::Later(later) => {
                let (router, rules, kept) = (self.clone(), Arc::clone(rules), request.keep());
                Answer::later(move |body| async move {
                    let response = later(body).await;
                    let finished = kept.with(|request| router.finish(&rules, response, request));
                    finished.response(RequestBody::empty()).await
                })
            }
        }
    }

    /// Asks the places on behalf of a user whose password is right.
    fn ask_with_password(
        &self,
        route: &Route,
        rules: &Arc<Rules>,
        basic_auth: &BasicAuth,
        request: &Request<'_>,
    ) -> Answer {
        match basic_auth.admit(request.head, request.origin.peer, request.origin.now) {
            Admission::Admitted(user) => {
                let user = Some(with_password(&user));
                self.ask_authorized(route, rules, &Request { user, ..*request })
            }
            Admission::Refused(response) => Answer::Now(response),
            Admission::ToCheck(check) => {
                let (router, rules, kept) = (self.clone(), Arc::clone(rules), request.keep());
                let number = route.number;
                Answer::later(move |body| async move {
                    let Some(basic_auth) = &rules.basic_auth else {
                        return Response::error(StatusCode::INTERNAL_SERVER_ERROR);
                    };
                    let user = match basic_auth.check(check).await {
                        Ok(user) => user,
                        Err(refused) => return refused,
                    };
                    let answer = kept.with(|request| {
                        let request = Request { user: Some(with_password(&user)), ..*request };
                        match router.0.routes.get(number) {
                            Some(route) => router.ask_authorized(route, &rules, &request),
                            None => Answer::Now(Response::error(StatusCode::INTERNAL_SERVER_ERROR)),
                        }
                    });
                    answer.response(body).await
                })
            }
        }
    }

    /// Asks the places with the fields and the path that the route gives the request.
    pub(super) fn ask_changed(
        &self,
        route: &Route,
        rules: &Rules,
        request: &Request<'_>,
    ) -> Answer {
        if let Some(user) = request.user
            && rules.response_fields.has_user()
        {
            request.origin.notes.steps().set_user(user.name);
        }
        let value_digest = rules.value_digest(&request.values());
        let request = &Request { value_digest, ..*request };
        let fields = &rules.given_fields;
        if fields.is_empty() {
            return self.ask_rewritten(route, rules, request, request);
        }
        let changes = fields.changes(&request.values());
        request.with_given(fields.names(), &changes, |changed| {
            self.ask_rewritten(route, rules, request, changed)
        })
    }

    /// Asks the places with the path rewritten. Variables are those of `sent`.
    fn ask_rewritten(
        &self,
        route: &Route,
        rules: &Rules,
        sent: &Request<'_>,
        request: &Request<'_>,
    ) -> Answer {
        let Some(rewrite) = &rules.rewrite else { return self.ask_places(route, request, 0) };
        let head = request.head;
        let values = sent.values();
        let path = rewrite.path(&values, &route.path);
        let target = match head.query {
            Some(query) => [&path, "?", query].concat(),
            None => path.clone(),
        };
        let (script_name, path_info) = rewrite.mount(&values, &route.path);
        let rewritten = RequestHead { target: &target, path: &path, ..head.clone() };
        let Ok(path) = RequestPath::parse(&path) else {
            return Answer::Now(Response::error(StatusCode::BAD_REQUEST));
        };
        let request = Request {
            path: &path,
            rewritten: &rewritten,
            script_name,
            path_info: Some(&path_info),
            ..*request
        };
        self.ask_places(route, &request, 0)
    }
}

/// Returns a visitor whose password is right.
fn with_password(name: &str) -> User<'_> {
    User { name, auth_type: Some("Basic") }
}
