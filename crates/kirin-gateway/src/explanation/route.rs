//! Explains how a route handles a request: the rules before its places, the places, and the changes
//! to the response.

use std::fmt::Display;
use std::path::PathBuf;

use http::Method;
use kirin_compress::{Coding, Codings};
use kirin_files::file_name::FileName;
use kirin_http::{Origin, Peer, RequestHead, RequestPath, ResponseLog};
use kirin_store::Namespace;

use super::program::program_of;
use super::stored::{CachedQuestion, Question};
use crate::filters::cache::cache_request::{Bypass, CacheRequest};
use crate::filters::compress_codings::Compress;
use crate::pages::store_key::key_of;
use crate::places::fallback::is_navigation;
use crate::places::hidden_scripts::HiddenScripts;
use crate::places::kind::{PlaceConfig, STORE};
use crate::places::{cgi, files, lua};
use crate::request::answers::NoRoutes;
use crate::request::context::{Request, SharedHead};
use crate::request::lineage::Lineage;
use crate::routing::access::Access;
use crate::routing::limit_refusal::LimitRefusal;
use crate::routing::settings::{GatewayConfig, RouteConfig};
use crate::routing::variables::RequestValues;

/// The way in which a route handles a request.
#[derive(Debug)]
pub struct ExplainedRoute<'a> {
    /// The route.
    pub config: &'a RouteConfig,
    /// The rules before the places, in their order.
    pub before: Vec<ExplainedRule>,
    /// The places in order. Empty if a rule answers the request.
    pub places: Vec<ExplainedPlace<'a>>,
    /// The answer of Kirin if no place answers. `None`: a rule or a place answers.
    pub unanswered: Option<&'static str>,
    /// The changes to the response.
    pub after: Vec<ExplainedRule>,
    /// The target that places see.
    pub target: String,
    /// The path that places see.
    pub path: String,
    /// The question for the store of a running Kirin. `None`: the request reaches neither store nor
    /// cache.
    pub question: Option<Question>,
}

/// A rule, and its effect on the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplainedRule {
    /// The key of the configuration.
    pub key: &'static str,
    /// Its effect, as text for the operator.
    pub text: String,
    /// Whether it answers the request, so that Kirin asks nothing after it.
    pub answers: bool,
}

/// A place, and the page or file that it looks for.
#[derive(Debug)]
pub struct ExplainedPlace<'a> {
    /// The place.
    pub config: &'a PlaceConfig,
    /// The page or file that it looks for.
    pub sought: Sought,
}

/// The page, file or program that a place uses for a request.
#[derive(Debug, PartialEq, Eq)]
pub enum Sought {
    /// Nothing: the reason why it passes the request on.
    Nothing(&'static str),
    /// The page with this key.
    Page(String),
    /// The file of this name below the directory. It may be a directory, whose index page counts.
    File(PathBuf),
    /// The script decides.
    Script(PathBuf),
    /// The CGI program answers.
    Program {
        /// Its file.
        file: PathBuf,
        /// `SCRIPT_NAME` and the percent-encoded `PATH_INFO`.
        mount: (String, String),
        /// The way in which the cache handles the request. `None`: the route has none.
        cache: Option<CacheSought>,
    },
    /// The application or upstream answers. `cache` says how the cache before it handles the
    /// request.
    Code {
        /// `SCRIPT_NAME` and the percent-encoded `PATH_INFO`, if the route has a `rewrite`.
        mount: Option<(String, String)>,
        /// The way in which the cache handles the request. `None`: the route has none.
        cache: Option<CacheSought>,
    },
}

/// The way in which the cache of a route handles a request.
#[derive(Debug, PartialEq, Eq)]
pub enum CacheSought {
    /// It bypasses the cache, for this reason.
    Bypass(&'static str),
    /// It looks for the response to the target.
    Response,
}

impl ExplainedRule {
    fn new(key: &'static str, text: impl Into<String>) -> Self {
        Self { key, text: text.into(), answers: false }
    }

    fn answer(key: &'static str, text: impl Into<String>) -> Self {
        Self { key, text: text.into(), answers: true }
    }
}

impl<'a> ExplainedRoute<'a> {
    /// Explains what `route` does. `path` is the path of `head`, and `namespace` that of its site.
    pub fn new(
        config: &GatewayConfig,
        route: &'a RouteConfig,
        namespace: &Namespace,
        head: &RequestHead<'_>,
        origin: Origin<'_>,
        path: &RequestPath<'_>,
        is_purge: bool,
    ) -> Self {
        let mut before = Vec::new();
        if !is_purge {
            before.extend(access_steps(&route.rules.access, origin.peer));
        }
        before.extend(
            route
                .rules
                .rate_limits
                .iter()
                .map(|limit| ExplainedRule::new("rate_limit", limit_text(limit, &limit.refusal))),
        );
        let limits = route.rules.in_flight_limits.iter();
        before.extend(
            limits.map(|limit| {
                ExplainedRule::new("in_flight_limit", limit_text(limit, &limit.refusal))
            }),
        );
        let values = RequestValues { head, path, origin, user: None };
        before.extend(rule_steps(route, &values));
        if is_purge {
            let text = "the client is in `purge_from`: Kirin purges the target, or what `Kirin-Purge` names";
            before.push(ExplainedRule::answer("PURGE", text));
        }
        // A later rule is not asked either.
        let asked = before.iter().position(|step| step.answers).map_or(before.len(), |at| at + 1);
        let answers = asked > 0 && before[asked - 1].answers;
        before.truncate(asked);
        let rewritten_path = match &route.rules.rewrite {
            Some(rewrite) => rewrite.path(&values, &route.path),
            None => head.path.to_owned(),
        };
        let target = match (&route.rules.rewrite, head.query) {
            (None, _) => head.target.to_owned(),
            (Some(_), None) => rewritten_path.clone(),
            (Some(_), Some(query)) => format!("{rewritten_path}?{query}"),
        };
        let mut explained = Self {
            config: route,
            before,
            places: Vec::new(),
            unanswered: None,
            after: after(route),
            target,
            path: rewritten_path,
            question: None,
        };
        if !answers {
            explained.add_places(config, namespace, head, origin, path);
        }
        explained
    }

    fn add_places(
        &mut self,
        config: &GatewayConfig,
        namespace: &Namespace,
        head: &RequestHead<'_>,
        origin: Origin<'_>,
        sent_path: &RequestPath<'_>,
    ) {
        let route = self.config;
        let rewritten = RequestHead { target: &self.target, path: &self.path, ..head.clone() };
        let values = RequestValues { head, path: sent_path, origin, user: None };
        let hidden = HiddenScripts::new(&config.script_extensions);
        let mut question =
            Question { protection: route.protection().to_string(), ..Question::default() };
        let cache_sought = |question: &mut Question| {
            route.cache.as_ref()?;
            Some(match cached_question(route, namespace, head, origin, sent_path) {
                Ok(cached) => {
                    question.cached = Some(cached);
                    CacheSought::Response
                }
                Err(reason) => CacheSought::Bypass(reason),
            })
        };
        for place in &route.places {
            let name = place.kind.name;
            let sought = if name == STORE || name == files::KIND.name {
                if !head.is_get_or_head() {
                    Sought::Nothing("it answers GET and HEAD only")
                } else if name == STORE {
                    match key_of(&rewritten, namespace) {
                        Some(key) => {
                            let key = String::from_utf8_lossy(&key).into_owned();
                            question.page = Some(key.clone());
                            Sought::Page(key)
                        }
                        None => Sought::Nothing(
                            "no page of this site can have the target as its key: it is longer \
                             than 250 bytes, or begins with the name of another site",
                        ),
                    }
                } else {
                    file_of(&self.path, place, &hidden)
                }
            } else if name == lua::KIND.name {
                Sought::Script(place.path().map(PathBuf::from).unwrap_or_default())
            } else if name == cgi::KIND.name {
                match program_of(route, place, &values) {
                    None => Sought::Nothing("the path names no program of the directory"),
                    Some((file, mount)) => {
                        let cache = cache_sought(&mut question);
                        Sought::Program { file, mount, cache }
                    }
                }
            } else {
                let mount = route.rules.rewrite.as_ref().map(|rewrite| {
                    let (script_name, path_info) = rewrite.mount(&values, &route.path);
                    (String::from_utf8_lossy(script_name).into_owned(), path_info.into_owned())
                });
                Sought::Code { mount, cache: cache_sought(&mut question) }
            };
            self.places.push(ExplainedPlace { config: place, sought });
        }
        if !route.places.last().is_some_and(PlaceConfig::answers_all) {
            self.unanswered = Some(match (head.is_get_or_head(), &head.method) {
                (true, _) if route.fallback.is_some() && is_navigation(head) => {
                    "the page of `fallback`, or 404 if it is not there"
                }
                (true, _) if route.fallback.is_some() => {
                    "404: `fallback` is for clients that accept `text/html`"
                }
                (true, _) => "404",
                (false, &Method::OPTIONS) => {
                    "204 with `Allow: GET, HEAD, OPTIONS` if a place has the path, otherwise 404"
                }
                (false, _) => {
                    "405 with `Allow: GET, HEAD, OPTIONS` if a place has the path, otherwise 404"
                }
            });
        }
        if question.page.is_some() || question.cached.is_some() {
            self.question = Some(question);
        }
    }
}

/// Returns the file to look for in a directory.
fn file_of(path: &str, place: &PlaceConfig, hidden: &HiddenScripts) -> Sought {
    if RequestPath::parse(path).is_ok_and(|path| hidden.hide(path.normalized())) {
        return Sought::Nothing("the path names a script of a FastCGI server");
    }
    let Ok(name) = FileName::parse(path) else {
        return Sought::Nothing("no file can have this name");
    };
    if name.is_hidden() {
        return Sought::Nothing("files whose names begin with a dot are not served");
    }
    let name = String::from_utf8_lossy(&name.name).into_owned();
    let directory = place.path().map(PathBuf::from).unwrap_or_default();
    Sought::File(directory.join(name.trim_start_matches('/')))
}

/// Returns the question about the cached response, or the reason why the request bypasses the
/// cache.
fn cached_question(
    route: &RouteConfig,
    namespace: &Namespace,
    head: &RequestHead<'_>,
    origin: Origin<'_>,
    path: &RequestPath<'_>,
) -> Result<CachedQuestion, &'static str> {
    let Some(settings) = &route.cache else { return Err("no cache") };
    let (lineage, kept) = (Lineage::default(), SharedHead::new());
    let request = Request::new(head, origin, path, namespace, &lineage, &NoRoutes, &kept);
    let value_digest = route.rules.value_digest(&request.values());
    let request = Request { protection: route.protection(), value_digest, ..request };
    let cache_request =
        CacheRequest::from_request(&request, settings).map_err(|bypass| match bypass {
            Bypass::Method => "method",
            Bypass::Reason(reason) => reason,
        })?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok(CachedQuestion {
        key: text(&cache_request.key),
        fields: head
            .fields
            .iter()
            .map(|field| (field.name.to_owned(), text(field.value)))
            .collect(),
        has_cookie: cache_request.has_cookie,
        has_authorization: cache_request.has_authorization,
        obeys_reload: settings.obeys_reload,
    })
}

fn limit_text(limit: &impl Display, refusal: &LimitRefusal) -> String {
    match refusal.settings() {
        settings if settings.is_dry_run => format!("{limit}; dry run: more are counted and pass"),
        settings => format!("{limit}; more get {}", settings.status.as_u16()),
    }
}

/// Returns the effect of `deny`, `allow` and `maintenance` on a client.
fn access_steps(access: &Access, client: &Peer) -> Vec<ExplainedRule> {
    let mut steps = Vec::new();
    if let Some(denial) = &access.denial {
        let status = denial.status.as_u16();
        steps.push(match &denial.except {
            None => ExplainedRule::answer("deny", format!("{status} for everybody")),
            Some(served) => {
                let networks = served.names().join(", ");
                match served.contains(client) {
                    true => ExplainedRule::new(
                        "allow",
                        format!("{client} is served: one of {networks}"),
                    ),
                    false => ExplainedRule::answer(
                        "allow",
                        format!("{status}: {client} is not one of {networks}"),
                    ),
                }
            }
        });
    }
    if let Some(maintenance) = &access.maintenance {
        let seconds = maintenance.retry_after_seconds;
        let page = match &maintenance.page {
            Some(page) => format!(" and the page {page}"),
            None => String::new(),
        };
        steps.push(match maintenance.except.contains(client) {
            true => ExplainedRule::new(
                "maintenance",
                format!("{client} is served: one of {}", maintenance.except.names().join(", ")),
            ),
            false => ExplainedRule::answer(
                "maintenance",
                format!("503 with `Retry-After: {seconds}`{page}"),
            ),
        });
    }
    steps
}

/// Returns the effect of `redirects`, `redirect`, `basic_auth`, `auth_request` and `rewrite` on a
/// request.
fn rule_steps(route: &RouteConfig, values: &RequestValues<'_>) -> Vec<ExplainedRule> {
    let (rules, mut steps) = (&route.rules, Vec::new());
    if let Some(redirects) = &rules.redirects {
        let name = &redirects.table.name;
        let (path, query) = (values.path, values.head.query);
        steps.push(match redirects.table.find(path, query) {
            None => ExplainedRule::new("redirects", format!("no line of {name} is for the path")),
            Some(line) => {
                let status = line.status.unwrap_or(redirects.default_status).as_u16();
                let location = line.location(path, query);
                let text = format!("{status} to {location}, by line {} of {name}", line.number);
                ExplainedRule::answer("redirects", text)
            }
        });
    }
    if let Some(redirect) = &rules.redirect {
        let response = redirect.respond(values, &route.path);
        let location = response.fields.get("location").unwrap_or_default();
        let location = String::from_utf8_lossy(location);
        steps.push(ExplainedRule::answer(
            "redirect",
            format!("{} to {location}", response.status.as_u16()),
        ));
    }
    if let Some(basic_auth) = &rules.basic_auth {
        let file = basic_auth.file_path().display();
        steps.push(match values.head.field("authorization") {
            None => ExplainedRule::answer(
                "basic_auth",
                format!("401: the request has no `Authorization`; the passwords are in {file}"),
            ),
            Some(_) => ExplainedRule::new(
                "basic_auth",
                format!("the password is looked up in {file}; a wrong one gets 401"),
            ),
        });
    }
    if let Some(auth) = &rules.auth_request {
        let names = auth.fields.as_slice().join(", ");
        let goes_on = match names.is_empty() {
            true => "goes on".to_owned(),
            false => format!("goes on with {names} of the answer"),
        };
        let text = format!("asks {auth}: 2xx {goes_on}; 3xx, 401 and 403 are the answer");
        steps.push(ExplainedRule::new("auth_request", text));
    }
    if !rules.given_fields.is_empty() {
        let names = rules.given_fields.names().as_slice().join(", ");
        steps.push(ExplainedRule::new("request_headers", names));
    }
    if let Some(rewrite) = &rules.rewrite {
        let path = rewrite.path(values, &route.path);
        steps.push(ExplainedRule::new("rewrite", format!("places look for {path}")));
    }
    steps
}

/// Returns the changes to the response.
fn after(route: &RouteConfig) -> Vec<ExplainedRule> {
    let (rules, mut steps) = (&route.rules, Vec::new());
    match route.ssi {
        Some(true) => {
            steps.push(ExplainedRule::new("ssi", "directives run in the HTML of all places"))
        }
        Some(false) => steps.push(ExplainedRule::new("ssi", "no directives run")),
        None => {}
    }
    if route.esi {
        steps.push(ExplainedRule::new("esi", "tags run in the HTML of all places"));
    }
    if route.immutable {
        steps.push(ExplainedRule::new("immutable", "files may be cached for a year"));
    }
    match route.compress {
        Compress::Shared => {}
        Compress::All(codings) => steps.push(ExplainedRule::new("compress", names(codings))),
    }
    let pages: Vec<_> = rules.error_pages.texts().collect();
    if !pages.is_empty() {
        let whose = match rules.error_pages.intercept {
            true => "errors of all places",
            false => "errors of Kirin and of files",
        };
        steps.push(ExplainedRule::new("error_pages", format!("{}, for {whose}", pages.join(", "))));
    }
    if !rules.response_fields.is_empty() {
        steps.push(ExplainedRule::new("headers", rules.response_fields.names().join(", ")));
    }
    if let Some(mirror) = &route.mirror {
        steps.push(ExplainedRule::new("mirror", mirror.to_string()));
    }
    if let ResponseLog::None = route.log {
        steps.push(ExplainedRule::new("access_log", "not logged"));
    }
    steps
}

fn names(codings: Codings) -> String {
    let names: Vec<_> =
        Coding::ALL.into_iter().filter(|coding| codings.has(*coding)).map(Coding::name).collect();
    match names.as_slice() {
        [] => "nothing is compressed".into(),
        names => format!("{} for all places", names.join(", ")),
    }
}
