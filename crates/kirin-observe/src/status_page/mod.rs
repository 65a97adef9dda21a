//! The status page: the numbers of `kirin top` in a browser. The admin listener has it, and the
//! place `status` of a route.
//!
//! The page has no external asset. Its numbers are in the HTML, so it needs no script; the script
//! fetches the page again, and draws plots. Only the style and the script whose digests are in
//! `Content-Security-Policy` may run.

mod html;

use std::sync::{Arc, LazyLock};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http::StatusCode;
use kirin_http::{Answer, AnsweredBy, Body, RequestHead, Response, form, percent};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::live::rates::Rates;
use crate::live::snapshot::Snapshot;
use crate::live::units;
use crate::live::views::{self, Span};
use html::{Escaped, push, push_table};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// The query with which a client asks for JSON in place of the page.
const JSON_QUERY: &str = "json";

/// The parameter of the query that names the only site whose URLs are shown.
const SITE_PARAMETER: &str = "site";

/// The most rows of the URLs and of the workers.
const MAX_ROWS: usize = 100;

/// The value of `Content-Security-Policy`.
static POLICY: LazyLock<Arc<str>> = LazyLock::new(|| {
    let digest = |text: &str| BASE64_STANDARD.encode(Sha256::digest(text.as_bytes()));
    let (style, script) = (digest(STYLE), digest(SCRIPT));
    format!(
        "default-src 'none'; style-src 'sha256-{style}'; script-src 'sha256-{script}'; \
         connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    .into()
});

/// A function that takes a snapshot. It reads files, so it runs on a thread of its own.
pub trait Snapshots: FnOnce() -> Snapshot + Send + 'static {}

impl<F: FnOnce() -> Snapshot + Send + 'static> Snapshots for F {}

/// The form of the answer.
#[derive(Clone, Copy, Debug)]
enum StatusFormat {
    /// The page.
    Html,
    /// The numbers.
    Json,
}

/// Answers GET and HEAD with the page, or with JSON if the query has `json`. A `site=NAME` in the
/// query leaves out the URLs of other sites. Queries of slow requests are left out, because the
/// page may be on a site.
pub fn answer(snapshot: impl Snapshots, request: &RequestHead<'_>) -> Answer {
    let format = if is_for_json(request) { StatusFormat::Json } else { StatusFormat::Html };
    answer_as(snapshot, format, request, false)
}

/// Answers GET and HEAD with all that `kirin top` shows, which is for operators only.
pub fn answer_top(snapshot: impl Snapshots, request: &RequestHead<'_>) -> Answer {
    answer_as(snapshot, StatusFormat::Json, request, true)
}

/// Answers GET and HEAD. A thread of its own makes the text, so that the event loop does not wait.
fn answer_as(
    snapshot: impl Snapshots,
    format: StatusFormat,
    request: &RequestHead<'_>,
    has_queries: bool,
) -> Answer {
    let site = site_of(request);
    let write = move || {
        let mut snapshot = snapshot();
        if let Some(site) = &site {
            snapshot.keep_site(site);
        }
        if !has_queries {
            snapshot.leave_out_queries();
        }
        match format {
            StatusFormat::Html => Some(page(&snapshot)),
            StatusFormat::Json => serde_json::to_string(&snapshot).ok(),
        }
    };
    Answer::later(move |_| async move {
        match tokio::task::spawn_blocking(write).await {
            Ok(Some(text)) => response(format, text),
            _ => Response::error(StatusCode::INTERNAL_SERVER_ERROR),
        }
    })
}

/// Returns whether a request to `/` of the admin listener is for the page, and not for the text.
pub fn is_wanted(request: &RequestHead<'_>) -> bool {
    let is_html = |accept: &[u8]| accept.windows(9).any(|part| part == b"text/html");
    is_for_json(request) || request.field("accept").is_some_and(is_html)
}

fn is_for_json(request: &RequestHead<'_>) -> bool {
    request.query.is_some_and(|query| query.split('&').any(|part| part == JSON_QUERY))
}

/// Returns the site that the query names, decoded.
fn site_of(request: &RequestHead<'_>) -> Option<String> {
    let pairs = form::pairs(request.query?.as_bytes()).map(form::name_and_value);
    let mut sites = pairs.filter(|(name, _)| *name == SITE_PARAMETER.as_bytes());
    let site = percent::decode(sites.next()?.1).into_owned();
    Some(String::from_utf8_lossy(&site).into_owned())
}

fn response(format: StatusFormat, text: String) -> Response {
    let body = Body::from(text.into_bytes());
    let mut response = Response::new(AnsweredBy::SERVER, StatusCode::OK, body);
    response.fields.push("Cache-Control", "no-store");
    response.fields.push("X-Content-Type-Options", "nosniff");
    match format {
        StatusFormat::Html => {
            response.fields.push("Content-Type", "text/html; charset=utf-8");
            response.fields.push("Content-Security-Policy", &**POLICY);
            response.fields.push("Referrer-Policy", "no-referrer");
        }
        StatusFormat::Json => response.fields.push("Content-Type", "application/json"),
    }
    response
}

/// Returns the page.
fn page(snapshot: &Snapshot) -> String {
    let mut html = String::with_capacity(32 << 10);
    let version = Escaped(snapshot.status["version"].as_str().unwrap_or_default());
    push(
        &mut html,
        format_args!(
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"robots\" content=\"noindex\">\n\
             <title>Kirin status</title>\n<style>{STYLE}</style>\n\
             <noscript><meta http-equiv=\"refresh\" content=\"5\"></noscript></head>\n\
             <body><header><h1>Kirin</h1><p id=\"state\">{version}, pid {}, up {}</p>\
             <button id=\"pause\" type=\"button\" hidden>Pause</button></header>\n\
             <div id=\"plots\" class=\"plots\" hidden></div>\n",
            snapshot.number(&["pid"]),
            units::duration(snapshot.uptime_ms / 1000),
        ),
    );
    push_numbers(&mut html, snapshot);
    push(&mut html, format_args!("<script>{SCRIPT}</script>\n</body></html>\n"));
    html
}

/// Appends the part that the script exchanges. Its attributes are what the plots need.
fn push_numbers(html: &mut String, snapshot: &Snapshot) {
    let rates = Rates::between(None, snapshot);
    let total = &snapshot.live.total;
    push(
        html,
        format_args!(
            "<div id=\"numbers\" data-uptime=\"{}\" data-pid=\"{}\" data-requests=\"{}\" \
             data-counted=\"{}\" data-hits=\"{}\" data-time=\"{}\" data-bytes=\"{}\" \
             data-errors=\"{}\" data-connections=\"{}\" data-busy=\"{}\" data-waiting=\"{}\">\n",
            snapshot.uptime_ms,
            snapshot.number(&["pid"]),
            snapshot.live.requests,
            total.requests,
            total.hits,
            total.time_ms,
            total.bytes,
            total.by_class[4],
            rates.connections,
            rates.busy,
            rates.waiting,
        ),
    );
    let mut urls = views::urls(snapshot, Span::LastMinute);
    let mut workers = views::workers(snapshot);
    for table in [&mut urls, &mut workers] {
        table.sort(table.order.unwrap_or_default(), false);
        table.rows.truncate(MAX_ROWS);
    }
    push_table(html, &urls, "last minute, by sum of time");
    push_table(html, &workers, "");
    push_slow(html, snapshot);
    for table in [views::apps(snapshot), views::upstreams(snapshot)] {
        if !table.rows.is_empty() {
            push_table(html, &table, "");
        }
    }
    html.push_str("<div class=\"side\">");
    push_table(html, &rates.table(), "last minute");
    push_table(html, &views::cache(snapshot), "since the start");
    push_table(html, &views::store(snapshot), "since the start");
    html.push_str("</div></div>\n");
}

/// Appends the slow requests, each with its stack.
fn push_slow(html: &mut String, snapshot: &Snapshot) {
    let mut table = views::slow(snapshot);
    if table.rows.is_empty() {
        return;
    }
    table.sort(table.order.unwrap_or_default(), false);
    push_table(html, &table, "the last of each app");
    let requests = |app: &Value| app["slow_requests"].as_array().cloned().unwrap_or_default();
    for (index, request) in snapshot.list("apps").iter().flat_map(requests).enumerate() {
        let words = |key: &str| request[key].as_str().unwrap_or_default().to_owned();
        let stack = request["stack"].as_array().cloned().unwrap_or_default();
        let (method, path) = (words("method"), words("path"));
        let (method, path) = (Escaped(&method), Escaped(&path));
        push(
            html,
            format_args!("<details id=\"slow-{index}\"><summary>{method} {path}</summary><pre>"),
        );
        for line in stack.iter().filter_map(Value::as_str) {
            push(html, format_args!("{}\n", Escaped(line)));
        }
        html.push_str("</pre></details>\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::views::tests::snapshot;

    #[test]
    fn the_numbers_are_in_the_html() {
        let page = page(&snapshot());
        for part in [
            "<td>app:web</td><td>GET /memo/{id}</td>",
            "<td>10.0.0.1:80</td>",
            "data-requests=\"1000\"",
            "data-waiting=\"3\"",
            "<td>requests/s</td><td class=\"n\">12</td>",
            "Memo::slow lib/Memo.pm:42\nmain app.psgi:7",
        ] {
            assert!(page.contains(part), "no {part} in\n{page}");
        }
    }

    #[test]
    fn text_of_strangers_is_escaped_in_the_page() {
        let mut snapshot = snapshot();
        let hostile = "/\"'><script>alert(1)</script><img src=x onerror=alert(1)>&amp;";
        snapshot.live.urls[0].pattern = hostile.into();
        snapshot.live.urls[0].method = "<GET>".into();
        snapshot.workers[1].path = hostile.into();
        for key in ["method", "path"] {
            snapshot.status["apps"][0]["slow_requests"][0][key] = hostile.into();
        }
        snapshot.status["apps"][0]["slow_requests"][0]["stack"] = serde_json::json!([hostile]);
        snapshot.status["version"] = hostile.into();
        let page = page(&snapshot);
        assert_eq!(page.matches("<script").count(), 1, "{page}");
        assert!(
            !page.contains("<img") && !page.contains("<GET>") && !page.contains("<b>"),
            "{page}"
        );
        assert!(page.contains("/&quot;&#39;&gt;&lt;script&gt;alert(1)&lt;/script&gt;"), "{page}");
        assert!(page.contains("&amp;amp;"), "{page}");
    }

    #[test]
    fn the_page_loads_nothing_from_other_addresses() {
        let page = page(&snapshot());
        for part in ["src=", "href=", "url(", "@import", "onclick", "style=\""] {
            assert!(!page.contains(part), "{part}");
        }
        let policy = &**POLICY;
        assert!(
            policy.starts_with("default-src 'none'; ") && !policy.contains("unsafe"),
            "{policy}"
        );
        // The parser would end the elements there, and the digests would be wrong.
        assert!(!SCRIPT.contains("</script") && !STYLE.contains("</style"));
    }

    #[test]
    fn an_empty_snapshot_gives_a_complete_page() {
        assert!(page(&Snapshot::default()).ends_with("</html>\n"));
    }
}
