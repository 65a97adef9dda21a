//! `[[route]]`: which request goes where, and what holds for it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use kirin_files::FollowLinks;
use kirin_gateway::places::kind::PlaceConfig;
use kirin_gateway::places::{cgi, proxy, status};
use kirin_gateway::routing::conditions::RouteConditions;
use kirin_gateway::routing::password_checks::PasswordChecks;
use kirin_gateway::routing::path_pattern::PathPattern;
use kirin_gateway::routing::rules::Rules;
use kirin_gateway::routing::settings::RouteConfig;
use kirin_http::ResponseLog;
use kirin_proxy::BodyBuffering;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::access::{DenyStatus, MaintenanceKey};
use crate::access_log::{AccessLogConfig, AccessLogKey, LogsOfFile};
use crate::auth_request::{AuthRequestKey, CheckedAuthRequest, check_auth_request};
use crate::cache::{CacheKey, check_cache};
use crate::cgi::{CgiSection, check_cgi};
use crate::compress::CompressKey;
use crate::conditions::{MatchSection, check_conditions};
use crate::default::yes;
use crate::files::{check_fallback, check_index, check_media_types};
use crate::follow_links::FollowLinksKey;
use crate::mirror::{MirrorKey, check_mirror};
use crate::or_false::TextOrFalse;
use crate::place::{Named, check_place, forms};
use crate::redirect_tables::RedirectTables;
use crate::request_limits::{InFlightLimitSection, RateLimitSection};
use crate::rules::{Realm, RedirectStatus, check_rules};
use crate::source::{ConfigSource, ErrorCollector};
use crate::units::ByteSize;
use crate::written::Written;

/// The largest body that is read completely before an upstream gets it, if no key says otherwise.
const BUFFERED_BODY_LIMIT: ByteSize = ByteSize(64 << 20);

/// Which request goes where.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RouteSection {
    /// The paths that the route is for. `/static`: this path and everything below it, not
    /// `/statics`. `/users/{id}/avatar`: `{id}` is any one segment. `*.pdf`, `/docs/*.pdf`: paths
    /// whose last segment ends in `.pdf`. `= /favicon.ico`: this path only
    /// ([routes.md](routes.md#how-kirin-finds-the-route)).
    pub path: Written<String>,
    /// Conditions beside the path, such as `{ methods = ["POST"], query = { preview = "*" } }`. All
    /// of them must hold. Otherwise Kirin tries the next route.
    #[serde(rename = "match")]
    pub conditions: Option<Written<MatchSection>>,
    /// The places that Kirin asks, in this order. The first place that has the answer gives it.
    /// `store`: the item whose key is the request target. `files:DIR`: the file of that path below
    /// the directory. `lua:FILE`: the script ([lua.md](lua.md)). `app:NAME`: the application, which
    /// always answers. `proxy:NAME`: the upstream, which always answers, too. `cgi:PROGRAM`: the
    /// CGI program, which always answers, or of a directory the program that the path names
    /// ([cgi.md](cgi.md)). `status`: the status page, to read only
    /// ([status-page.md](status-page.md#behind-a-route)); the route needs `basic_auth`,
    /// `auth_request` or `allow`. Required, unless there is a `redirect`, a file of `redirects`, or
    /// a `deny` without `allow`.
    #[serde(default, rename = "try")]
    pub places: Vec<Written<String>>,
    /// Fields of all responses, errors included, such as `{ "X-Frame-Options" = "DENY" }`. They
    /// replace fields of the same name, and may have [variables](routes.md#variables). `""` removes
    /// a field.
    #[serde(default)]
    pub headers: BTreeMap<Written<String>, Written<String>>,
    /// Fields of requests that places get, such as `{ "X-Tenant" = "{host}" }`. They replace those
    /// of the client, and may have [variables](routes.md#variables). `""` removes a field.
    #[serde(default)]
    pub request_headers: BTreeMap<Written<String>, Written<String>>,
    /// Refuses clients: 403 or 404, the status that they get. With `allow` it is for all others,
    /// without it for everybody.
    #[schemars(with = "Option<u16>")]
    pub deny: Option<DenyStatus>,
    /// The addresses of the clients that the route serves: networks such as `"10.0.0.0/8"` and
    /// `"2001:db8::/32"`, addresses, and `"unix:"` for clients on unix sockets. Behind `trusted`
    /// proxies the client that they name counts. All others get 403, or the status of `deny`.
    pub allow: Option<Written<Vec<Written<String>>>>,
    /// Whether clients get 503 with `Retry-After`: `true`, or a table with the keys below
    /// ([routes.md](routes.md#maintenance)).
    #[serde(default)]
    #[schemars(with = "Option<bool>")]
    pub maintenance: MaintenanceKey,
    /// The path or site that clients are redirected to: `"/new"` or `"https://example.org/"`. Kirin
    /// appends the rest of the path after the route's own, and the query. It asks no place, and no
    /// password. The path may have names of the route's segments: `"/u/{id}"`.
    pub redirect: Option<Written<String>>,
    /// The status of a redirect: 301, 302, 303, 307 or 308. Lines of `redirects` may name another.
    #[serde(default)]
    pub redirect_status: Written<RedirectStatus>,
    /// A file with a redirect in each line: `FROM`, a tab, `TO`, and perhaps a tab and a status
    /// ([routes.md](routes.md#redirects)). The route redirects the requests that have a line. It
    /// asks no place for them, and no password. `false`: no requests, whatever the site says.
    pub redirects: Option<Written<TextOrFalse>>,
    /// The path, written decoded, that places see instead of the route's own. With `path = "/shop"`
    /// and `rewrite = "/v2"` they look for `/v2/cart` when a client asks for `/shop/cart`. `rewrite
    /// = "/"` mounts an application there: `SCRIPT_NAME` has the route's path. It may have names of
    /// the route's segments.
    pub rewrite: Option<Written<String>>,
    /// Pages that replace Kirin's own error texts, by status: `{ 404 = "/errors/404.html", 5xx =
    /// "/errors/sorry.html" }`. They are paths of this site that are in the store or in files. The
    /// status stays.
    #[serde(default)]
    pub error_pages: BTreeMap<Written<String>, Written<String>>,
    /// Whether `error_pages` also replace errors of an application or a stored response.
    #[serde(default)]
    pub intercept_errors: bool,
    /// A file of names and passwords, as `htpasswd -B` makes it (bcrypt, SHA-crypt or Argon2).
    /// Visitors must give one of them. Applications find the name in `REMOTE_USER`. Kirin reads the
    /// file again when it has changed. `false`: nobody is asked, whatever the site says.
    pub basic_auth: Option<Written<TextOrFalse>>,
    /// What the password is for, as browsers show it.
    #[serde(default)]
    pub basic_auth_realm: Realm,
    /// The program that decides who may see the route: a path of this site, such as `"/auth"`, or a
    /// table with the keys below. Kirin asks it with the fields of each request. 2xx lets the
    /// request pass; 3xx except 304, 401 and 403 are the answer for the visitor
    /// ([routes.md](routes.md#auth_request)). `false`: nobody is asked, whatever the site says.
    #[schemars(with = "Option<String>")]
    pub auth_request: Option<Written<AuthRequestKey>>,
    /// The access log of the responses of this route, in place of that of the listener: what a
    /// listener's `access_log` may be. `false`: they are not logged. Default: the log of the
    /// listener.
    #[schemars(with = "Option<String>")]
    pub access_log: Option<Written<AccessLogKey>>,
    /// Whether a directory without an index page shows a list of its files.
    #[serde(default)]
    pub listing: bool,
    /// Which symbolic links out of a directory of `files:` or `cgi:` Kirin follows. `"owner"`:
    /// links whose owner also owns their target. `true`: all. `false`: none
    /// ([files.md](files.md#symbolic-links)).
    #[serde(default)]
    #[schemars(with = "bool")]
    pub follow_links: FollowLinksKey,
    /// Whether Kirin sends `FILE.br`, `FILE.zst` or `FILE.gz` for `FILE` to clients that accept it
    /// ([files.md](files.md)). With `false` it does not look for them.
    #[serde(default = "yes")]
    pub precompressed: bool,
    /// The names of index pages in a directory of `files:`, such as `["index.html", "index.htm"]`.
    /// Kirin takes the first that exists. With `[]` no directory has one. Default:
    /// `["index.html"]`.
    pub index: Option<Vec<Written<String>>>,
    /// The page for navigations that no place answers, such as `"index.html"`: a file below the
    /// directory of `files:`. It is for GET and HEAD of clients that open a page: `Sec-Fetch-Mode`
    /// is `navigate`, or it is missing and `Accept` names `text/html`. All others get 404
    /// ([spa.md](spa.md)).
    pub fallback: Option<Written<String>>,
    /// Whether the files of the route never change, because their names have fingerprints. They get
    /// `Cache-Control: public, max-age=31536000, immutable`. Errors do not get it
    /// ([spa.md](spa.md#files-that-never-change)).
    #[serde(default)]
    pub immutable: bool,
    /// Media types by file name extension, such as `{ webc = "text/html", "*" = "text/plain" }`.
    /// They come before the common ones. `*` is for names without a known extension, which are
    /// `application/octet-stream` otherwise.
    #[serde(default)]
    pub mime_types: BTreeMap<Written<String>, Written<String>>,
    /// The charset in the media types of text, unless `mime_types` has one. `""` stands for none.
    /// Default: `"utf-8"`.
    pub charset: Option<Written<String>>,
    /// The largest request body. A larger one is answered 413. Default: the `body_limit` of the
    /// application; `"64MB"` for `cgi:PROGRAM`; for an upstream no limit.
    pub body_limit: Option<ByteSize>,
    /// Whether Kirin reads a request's body completely before it sends the request to an upstream,
    /// so that its servers do not wait for slow clients. Otherwise Kirin passes the body on as it
    /// arrives. Applications always get complete bodies. With `true`, `body_limit` is `"64MB"`
    /// unless it is set. Default: `true` except for gRPC if a server of the upstream has
    /// `max_in_flight`; otherwise `false`.
    pub request_buffering: Option<bool>,
    /// Limits on the rate of requests, such as `[{ rate = "10/s", burst = 20 }]`. A request above
    /// any of them is answered 429 with `Retry-After`. They count requests to all places of the
    /// route, but not subrequests of includes and scripts.
    #[serde(default)]
    pub rate_limit: Vec<RateLimitSection>,
    /// Limits on requests that are in progress at the same time, such as `[{ max = 10 }]` for each
    /// address. A request above any of them is answered 503 with `Retry-After`
    /// ([limits.md](limits.md#requests-in-progress)). They count as `rate_limit` does.
    #[serde(default)]
    pub in_flight_limit: Vec<InFlightLimitSection>,
    /// Whether Kirin runs the directives in `text/html`: includes, variables, conditions
    /// ([ssi.md](ssi.md)). `true` and `false` are for all places of the route. Default: only in
    /// pages that a program has written into the store. Files do not run them, nor do responses of
    /// applications, upstreams and scripts, stored or not.
    pub ssi: Option<bool>,
    /// Whether Kirin runs the tags of ESI in `text/html`: includes, variables ([esi.md](esi.md)).
    /// It is for all places of the route. Default: `false`.
    #[serde(default)]
    pub esi: bool,
    /// Compression for clients that accept it: `true`, `false`, or the codings to use, such as
    /// `["br", "gzip"]`. `true` and a list are for all places of the route. Read
    /// [compression.md](compression.md) about BREACH before you use it for an application. Default:
    /// on for the store and files, off for applications.
    #[serde(default)]
    #[schemars(with = "Option<bool>")]
    pub compress: CompressKey,
    /// Whether Kirin stores responses of the route's application, upstream or CGI programs and
    /// reuses them, as their `Cache-Control` allows: `true`, or a table with the keys below
    /// ([cache.md](cache.md)).
    #[serde(default)]
    #[schemars(with = "Option<bool>")]
    pub cache: CacheKey,
    /// An upstream that gets copies of requests after their visitors have got their answers: a
    /// table with the keys below, such as `{ to = "proxy:next", share = "10%" }`. Kirin compares
    /// its answers with those of the place, counts them, and drops them ([mirror.md](mirror.md)).
    /// `false`: none, whatever the site says.
    #[serde(default)]
    #[schemars(with = "Option<bool>")]
    pub mirror: MirrorKey,
    /// What the CGI programs of the route may take: a table with the keys below
    /// ([cgi.md](cgi.md)).
    pub cgi: Option<CgiSection>,
}

/// The state that the routes of a file share while they are checked.
pub struct RouteContext<'a> {
    /// The apps and upstreams of the file.
    pub named: Named<'a>,
    /// The names of the upstreams with a server that takes only so many requests at a time.
    pub limited_upstreams: Vec<&'a str>,
    /// The checks of passwords, which all routes share.
    pub checks: &'a Arc<PasswordChecks>,
    /// The files of redirects that the routes so far have named.
    pub redirect_tables: RedirectTables,
    /// The size of the store's largest item in bytes.
    pub item_limit_bytes: usize,
    /// Whether the store has an origin.
    pub has_origin: bool,
    /// The access logs of the file.
    pub file_logs: &'a LogsOfFile,
    /// The access logs of routes so far. Routes name them by their numbers.
    pub logs: RefCell<Vec<RouteLog>>,
}

/// The access log of some routes.
pub struct RouteLog {
    /// The position of the log in the file. All routes of a site have the one of their site.
    span: Range<usize>,
    /// The log.
    pub log: AccessLogConfig,
}

impl RouteContext<'_> {
    /// Returns the log that a route or its site names. `None` if the key is wrong.
    fn log(
        &self,
        key: Option<&Written<AccessLogKey>>,
        source: &ConfigSource,
        errors: &mut ErrorCollector,
    ) -> Option<ResponseLog> {
        let Some(key) = key else { return Some(ResponseLog::OfListener) };
        let mut logs = self.logs.borrow_mut();
        let is_path = matches!(**key, AccessLogKey::Path(_));
        let number = match logs.iter().position(|other| other.span == key.span()) {
            Some(number) => number,
            None => {
                let Some(log) = self.file_logs.check(key, source, errors)? else {
                    return Some(ResponseLog::None);
                };
                let is_same = |other: &RouteLog| is_path && other.log.is_path(&log.target);
                logs.iter().position(is_same).unwrap_or_else(|| {
                    logs.push(RouteLog { span: key.span(), log });
                    logs.len() - 1
                })
            }
        };
        Some(u16::try_from(number).map_or(ResponseLog::OfListener, ResponseLog::OfRoute))
    }
}

/// Checks `section`.
pub fn check_route(
    section: &RouteSection,
    context: &RouteContext<'_>,
    source: &ConfigSource,
    errors: &mut ErrorCollector,
) -> Option<RouteConfig> {
    let path = PathPattern::parse(&section.path)
        .map_err(|message| source.error(section.path.span(), message));
    let path = errors.keep(path);
    let conditions = match &section.conditions {
        Some(conditions) => check_conditions(conditions, source, errors),
        None => Some(RouteConditions::default()),
    };
    let rules = check_rules(section, path.as_ref(), context, source, errors);
    let authorized = errors.keep(check_auth_request(section, &context.named, source));
    let places = places(section, &context.named, source, errors);
    if let Some(places) = &places {
        check_keys_of_places(section, places, source, errors);
    }
    let digest = conditions.as_ref().and_then(RouteConditions::digest);
    let cache = check_cache(&section.cache, context.item_limit_bytes, digest, source);
    let cache = errors.keep(cache);
    let mirror = errors.keep(check_mirror(&section.mirror, &context.named, source));
    let index = check_index(section.index.as_deref(), source, errors);
    let fallback = check_fallback(section, places.as_deref(), source, errors);
    let media_types = Arc::new(check_media_types(section, source, errors));
    let log = context.log(section.access_log.as_ref(), source, errors);
    let places = places?;
    let CheckedAuthRequest { rule: auth_request, authority } = authorized?;
    let programs = match places.iter().any(|place| place.kind.name == cgi::KIND.name) {
        true => {
            let default = CgiSection::default();
            Some(check_cgi(section.cgi.as_ref().unwrap_or(&default), source, errors)?)
        }
        false => None,
    };
    let body_limit_bytes = section
        .body_limit
        .or((section.request_buffering == Some(true)).then_some(BUFFERED_BODY_LIMIT))
        .map(|size| size.0);
    Some(RouteConfig {
        // The complete configuration numbers them.
        number: 0,
        path: path?,
        conditions: conditions?,
        request_buffering: request_buffering(section, &places, context, body_limit_bytes),
        places,
        log: log?,
        listing: section.listing,
        follow_links: section.follow_links.0,
        precompressed: section.precompressed,
        index,
        fallback,
        immutable: section.immutable,
        media_types,
        rules: Arc::new(Rules { auth_request, ..rules? }),
        authority,
        body_limit_bytes,
        compress: section.compress.0,
        cache: cache?,
        mirror: mirror?,
        programs,
        ssi: section.ssi,
        esi: section.esi,
    })
}

fn places(
    section: &RouteSection,
    named: &Named<'_>,
    source: &ConfigSource,
    errors: &mut ErrorCollector,
) -> Option<Vec<PlaceConfig>> {
    let refuses_all = section.deny.is_some() && section.allow.is_none();
    let redirects = section.redirect.is_some()
        || matches!(section.redirects.as_deref(), Some(TextOrFalse::Text(_)));
    if section.places.is_empty() && !redirects && !refuses_all {
        let message = format!(
            "`try` of route `{}` is empty: name at least one of {}, a `redirect` or a `deny`",
            section.path.as_str(),
            forms("or", |_| true)
        );
        errors.push(source.error(section.path.span(), message));
    }
    let mut places = Vec::new();
    for (index, place) in section.places.iter().enumerate() {
        let Some(checked) = errors.keep(check_place(place, named, source)) else { continue };
        if checked.answers_all() && index + 1 < section.places.len() {
            let message =
                format!("`{}` always answers: it must be the last in `try`", place.as_str());
            errors.push(source.error(place.span(), message));
        }
        places.push(checked);
    }
    (places.len() == section.places.len()).then_some(places)
}

/// Refuses keys that would be ignored, because they are for a kind of place that `try` lacks.
fn check_keys_of_places(
    section: &RouteSection,
    places: &[PlaceConfig],
    source: &ConfigSource,
    errors: &mut ErrorCollector,
) {
    let mut refuse = |key: &str, why: &str| {
        let message = format!("`{key}` of route `{}`: {why}", section.path.as_str());
        errors.push(source.error(section.path.span(), message));
    };
    for (key, is_set) in [
        ("listing", section.listing),
        ("follow_links", section.follow_links.0 != FollowLinks::Inside),
        ("precompressed", !section.precompressed),
        ("index", section.index.is_some()),
        ("fallback", section.fallback.is_some()),
        ("immutable", section.immutable),
        ("mime_types", !section.mime_types.is_empty()),
        ("charset", section.charset.is_some()),
        ("request_buffering", section.request_buffering == Some(true)),
        ("cache", section.cache.0.is_some()),
        ("mirror", section.mirror.0.is_some()),
        ("cgi", section.cgi.is_some()),
    ] {
        if is_set && !places.iter().any(|place| place.kind.keys.contains(&key)) {
            let needed = forms("or", |kind| kind.keys.contains(&key));
            refuse(key, &format!("there is no {needed} in `try`"));
        }
    }
    let is_protected = section.allow.is_some()
        || matches!(section.basic_auth.as_deref(), Some(TextOrFalse::Text(_)))
        || section.auth_request.as_ref().is_some_and(|key| !matches!(**key, AuthRequestKey::Off));
    if places.iter().any(|place| place.kind.name == status::KIND.name) && !is_protected {
        refuse(
            "try",
            "`status` would show everybody what visitors do; add `basic_auth = \"FILE\"` or `allow = \
             [\"10.0.0.0/8\"]`. If everybody may see it, write `allow = [\"0.0.0.0/0\", \"::/0\"]`",
        );
    }
    if section.esi && section.ssi == Some(false) {
        refuse("esi", "pages of the store with ESI have SSI, too; leave out `ssi = false`");
    }
}

/// Returns whether bodies are read completely first. Where servers have `max_in_flight`, a few slow
/// uploads would otherwise take all of their slots.
fn request_buffering(
    section: &RouteSection,
    places: &[PlaceConfig],
    context: &RouteContext<'_>,
    body_limit_bytes: Option<u64>,
) -> BodyBuffering {
    let is_limited = places.last().is_some_and(|place| {
        place.kind.name == proxy::KIND.name
            && context.limited_upstreams.contains(&place.argument.as_str())
    });
    match section.request_buffering {
        Some(true) => BodyBuffering::On,
        None if is_limited => BodyBuffering::UnlessGrpc {
            limit_bytes: body_limit_bytes.unwrap_or(BUFFERED_BODY_LIMIT.0),
        },
        Some(false) | None => BodyBuffering::Off,
    }
}
