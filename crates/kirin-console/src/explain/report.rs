//! The text that `kirin explain` prints: one block for each thing that a request meets.

use kirin_config::{Config, ListenerConfig};
use kirin_gateway::explanation::route::{CacheSought, ExplainedRoute, ExplainedRule, Sought};
use kirin_gateway::explanation::stored::{CachedAnswer, ItemAnswer, Question, StoredAnswer};
use kirin_gateway::explanation::{ExplainedSite, Explanation, FoundRoute};
use kirin_gateway::routing::host_table::SiteHost;
use kirin_gateway::routing::settings::RouteConfig;
use kirin_http::host::without_port;
use kirin_http::{ListenAddress, Method, RequestHead, ResponseLog};

use super::files;
use super::listener::{Arrival, spoken_at};

/// The width of the column with the names of blocks.
const COLUMN: usize = 12;

/// A text in blocks.
pub struct ExplanationText(String);

impl ExplanationText {
    /// Starts with a line about the request.
    pub fn new(request: &str) -> Self {
        Self(format!("{request}\n\n"))
    }

    /// Returns the text.
    pub fn finish(self) -> String {
        self.0
    }

    /// Adds the first line of a block.
    fn block(&mut self, name: &str, text: &str) {
        self.0.push_str(&format!("{name:COLUMN$}{text}\n"));
    }

    /// Adds another line to a block.
    fn line(&mut self, text: &str) {
        self.block("", text);
    }

    fn steps(&mut self, name: &str, steps: &[ExplainedRule]) {
        for (index, ExplainedRule { key, text, .. }) in steps.iter().enumerate() {
            self.block(if index == 0 { name } else { "" }, &format!("{key}: {text}"));
        }
    }

    /// Says at which listener the request arrives.
    pub fn listener(&mut self, arrival: &Arrival<'_>, head: &RequestHead<'_>, is_purge: bool) {
        match arrival {
            Arrival::At(listener) => {
                self.block("listener", &format!("{} ({})", listener.address, spoken_at(listener)));
                if let Some(port) = arrival.redirect(head, is_purge) {
                    let port = if port == 443 { String::new() } else { format!(":{port}") };
                    let (host, path) = (without_port(head.host), head.path);
                    let query = head.query.map(|query| format!("?{query}")).unwrap_or_default();
                    let to = format!("https://{host}{port}{path}{query}");
                    self.line(&format!("redirect_to_https: 308 to {to}"));
                }
            }
            Arrival::OtherScheme(listener) => {
                let scheme = if listener.tls.is_some() { "https" } else { "http" };
                let address = &listener.address;
                self.block("listener", &format!("{address} has only {scheme}: no route is asked"));
            }
            Arrival::Nowhere => {
                self.block("listener", "none has this port; explained as if one had");
            }
        }
    }

    /// Says which site has the host.
    pub fn site(&mut self, explanation: &Explanation<'_>) {
        let host = &explanation.host;
        let Some(site) = &explanation.site else {
            self.block("site", &format!("none has the host `{host}`: 421"));
            return;
        };
        match &site.entry {
            SiteHost::Exact(_) => self.block("site", &format!("`{host}` is one of `hosts`")),
            SiteHost::Below(_) | SiteHost::StartsWith(_) | SiteHost::Matches(_) => {
                self.block("site", &format!("`{host}` matches `{}` of `hosts`", site.entry));
            }
            SiteHost::Any => {
                self.block(
                    "site",
                    &format!("that of all other hosts; `{host}` has none of its own"),
                );
            }
        }
        match site.namespace.name() {
            "" => self.line("keys in the store have no name of a site"),
            name => self.line(&format!("keys in the store begin with `{name}:`")),
        }
    }

    /// Says which route answers, and why others do not.
    pub fn routes(&mut self, site: &ExplainedSite<'_>, head: &RequestHead<'_>) {
        match &site.found {
            FoundRoute::Route(route) => self.block("route", &name(route.config)),
            FoundRoute::OtherMethods(methods) => {
                let names: Vec<_> = methods.iter().map(Method::as_str).collect();
                let status = if head.method == "OPTIONS" { "204" } else { "405" };
                let names = names.join(", ");
                self.block(
                    "route",
                    &format!("none for {}: {status}, there is {names}", head.method),
                );
            }
            FoundRoute::Nothing => self.block("route", "none: 404"),
        }
        for passed_over in &site.passed_over {
            let reasons = passed_over.reasons.join("; ");
            self.line(&format!("not {}: {reasons}", name(passed_over.route)));
        }
        for route in &site.behind {
            self.line(&format!("after it {}", name(route)));
        }
    }

    /// Says what the route does.
    pub fn route(&mut self, route: &ExplainedRoute<'_>, config: &Config, head: &RequestHead<'_>) {
        self.steps("rules", &route.before);
        let (target, path) = (route.target.as_str(), route.path.as_str());
        let rewritten = RequestHead { target, path, ..head.clone() };
        for (index, place) in route.places.iter().enumerate() {
            let text = match &place.sought {
                Sought::Nothing(why) => format!("not asked: {why}"),
                Sought::Page(key) => format!("the page with the key `{key}`"),
                Sought::File(file) => {
                    let directory = place.config.path().unwrap_or(file);
                    let now =
                        files::answer(directory, route.config, &config.gateway, head, &rewritten);
                    format!("{} (now: {now})", file.display())
                }
                Sought::Script(_) => "the script decides whether it answers".into(),
                Sought::Program { file, mount: (script_name, path_info), .. } => format!(
                    "runs {}, with SCRIPT_NAME `{script_name}` and PATH_INFO `{path_info}`",
                    file.display()
                ),
                Sought::Code { mount, .. } => match mount {
                    None => "answers every request".into(),
                    Some((script_name, path_info)) => format!(
                        "answers every request, with SCRIPT_NAME `{script_name}` and PATH_INFO \
                         `{path_info}`"
                    ),
                },
            };
            let block = if index == 0 { "places" } else { "" };
            self.block(block, &format!("{}. {}: {text}", index + 1, place.config));
            if let Sought::Code { cache: Some(cache), .. }
            | Sought::Program { cache: Some(cache), .. } = &place.sought
            {
                self.line(&match cache {
                    CacheSought::Bypass(why) => format!("   past the cache ({why})"),
                    CacheSought::Response => "   unless the cache has its response".into(),
                });
            }
        }
        if let Some(unanswered) = route.unanswered {
            self.line(&format!("otherwise {unanswered}"));
        }
        self.steps("response", &route.after);
    }

    /// Says where the line of the access log goes.
    pub fn log(&mut self, log: ResponseLog, config: &Config, listener: Option<&ListenerConfig>) {
        let log = match log {
            // Said with the response.
            ResponseLog::None => return,
            ResponseLog::OfRoute(number) => config.route_logs.get(usize::from(number)),
            ResponseLog::OfListener => listener.and_then(|listener| listener.access_log.as_ref()),
        };
        let text = log.map_or_else(|| "none".to_owned(), ToString::to_string);
        self.block("access log", &text);
    }

    /// Says why no running Kirin can be asked.
    pub fn no_admin(&mut self, why: &str) {
        let why = why.lines().next().unwrap_or_default();
        self.block("running", &format!("not asked: {why}"));
    }

    /// Says what the store of a running Kirin has.
    pub fn stored(
        &mut self,
        question: &Question,
        address: &ListenAddress,
        answer: Result<StoredAnswer, String>,
    ) {
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => {
                self.block("running", &error);
                return;
            }
        };
        self.block("running", &format!("Kirin at {address}"));
        if question.page.is_some() {
            self.page(answer.page.as_ref());
        }
        if question.cached.is_some() {
            self.cached(&answer.cached);
        }
    }

    fn page(&mut self, page: Option<&ItemAnswer>) {
        let Some(item) = page else {
            self.line("store: there is no page");
            return;
        };
        let text = described(item);
        if item.status.is_none() {
            self.line(&format!("store: {text}; it has no head, so it is no page"));
            return;
        }
        self.line(&format!("store: {text}"));
        if !item.protected_by.is_empty() {
            let conditions = item.protected_by.join(", ");
            let passed = if item.is_admitted { "passes" } else { "does not pass" };
            self.line(&format!("store: protected by {conditions}, which this route {passed}"));
        }
    }

    fn cached(&mut self, cached: &CachedAnswer) {
        match cached {
            CachedAnswer::Nothing => self.line("cache: there is no response"),
            CachedAnswer::NotStored => {
                self.line("cache: a note that responses to this target are not stored");
            }
            CachedAnswer::OtherVariants(names) => {
                let names = names.join(", ");
                self.line(&format!("cache: responses vary by {names}; none is for this request"));
            }
            CachedAnswer::Response(response) => {
                self.line(&format!("cache: {}", described(&response.item)));
                let (age, fresh_for) = (response.age_seconds, response.fresh_for_seconds);
                self.line(&format!("cache: {}", response.reuse));
                self.line(&match fresh_for > 0 {
                    true => format!("cache: age {age} s, fresh for {fresh_for} s"),
                    false => format!("cache: age {age} s, stale for {} s", -fresh_for),
                });
                if !response.varies_by.is_empty() {
                    self.line(&format!("cache: varies by {}", response.varies_by.join(", ")));
                }
            }
        }
    }
}

/// Returns path and conditions of a route.
fn name(route: &RouteConfig) -> String {
    match route.conditions.is_empty() {
        true => route.path.to_string(),
        false => format!("{} with {}", route.path, route.conditions),
    }
}

fn described(item: &ItemAnswer) -> String {
    let mut parts = Vec::new();
    parts.extend(item.status.map(|status| status.to_string()));
    if !item.media_type.is_empty() {
        parts.push(item.media_type.clone());
    }
    parts.push(format!("{} bytes", item.bytes));
    parts.push(match item.expires_in_seconds {
        Some(seconds) => format!("expires in {seconds} s"),
        None => "never expires".into(),
    });
    if item.is_stale {
        parts.push("stale".into());
    }
    if !item.tags.is_empty() {
        parts.push(format!("tags {}", item.tags.join(" ")));
    }
    parts.join(", ")
}
