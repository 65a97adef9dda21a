//! Directives that add something to the routes of a server, a directory or a location.

use toml::{Table, Value};

use crate::apache::tree::Directive;
use crate::draft::Draft;
use crate::report::Outcome;
use crate::section::Section;
use crate::steps::effects::Effect;
use crate::text::{is_settable, size, without_variables};

/// Reads a directive that adds something. `None`: it is not such a directive.
pub(crate) fn option(directive: &Directive) -> Option<(Vec<Effect>, Outcome)> {
    let first = directive.argument(0);
    let carried = |effect| Some((vec![effect], Outcome::Carried(String::new())));
    let left_out = |text: &str| Some((Vec::new(), Outcome::LeftOut(text.to_owned())));
    match directive.name.as_str() {
        "header" | "requestheader" => Some(header(directive)),
        "options" => Some(options(directive)),
        "directoryindex" => {
            let names: Vec<Value> =
                directive.arguments.iter().map(|name| name.as_str().into()).collect();
            let pages = names.iter().filter(|name| !name.as_str().unwrap_or("").ends_with(".php"));
            let pages: Vec<Value> =
                if first == "disabled" { Vec::new() } else { pages.cloned().collect() };
            carried(of_files("index", Value::Array(pages)))
        }
        "fallbackresource" if first.ends_with(".php") || first == "disabled" => Some((
            Vec::new(),
            Outcome::ByItself("paths that are no files go to `index.php`".into()),
        )),
        "fallbackresource" => {
            let text = "For navigations only (docs/spa.md).".to_owned();
            Some((vec![Effect::Fallback(first.to_owned())], Outcome::Carried(text)))
        }
        "limitrequestbody" => match first.parse::<u64>() {
            Ok(0) | Err(_) => left_out("write `body_limit` of a route"),
            Ok(bytes) => carried(Effect::BodyLimit(size(bytes))),
        },
        "addtype" | "forcetype" if first.contains("httpd-php") => None,
        "addtype" => {
            let extensions = directive.arguments.iter().skip(1);
            let types: Table = extensions
                .map(|name| (name.trim_start_matches('.').to_owned(), Value::from(first)))
                .collect();
            carried(of_files("mime_types", Value::Table(types)))
        }
        "adddefaultcharset" => {
            let charset = if first.eq_ignore_ascii_case("off") { "" } else { first };
            let charset = if first.eq_ignore_ascii_case("on") { "iso-8859-1" } else { charset };
            carried(of_files("charset", Value::from(charset)))
        }
        "errordocument" => error_document(directive),
        "expiresdefault" => match seconds(&directive.arguments) {
            Some(seconds) => {
                let value = Value::from(format!("max-age={seconds}"));
                let fields = Table::from_iter([("Cache-Control".to_owned(), value)]);
                let text = "On errors, too. There is no `Expires`.".to_owned();
                Some((vec![Effect::Headers(fields)], Outcome::Carried(text)))
            }
            None => left_out("write `headers = { \"Cache-Control\" = \"max-age=3600\" }`"),
        },
        "expiresbytype" => left_out(
            "`headers` of a route such as `path = \"*.css\"`, or `immutable` for names with a \
             fingerprint (docs/spa.md)",
        ),
        _ => None,
    }
}

/// Returns the effect of a key for routes of files.
fn of_files(key: &str, value: Value) -> Effect {
    let mut keys = Section::default();
    keys.set(key, value);
    Effect::OfFiles(keys)
}

/// Reads `Header [always] set NAME VALUE` and `RequestHeader`.
fn header(directive: &Directive) -> (Vec<Effect>, Outcome) {
    let words: Vec<_> = directive.arguments.iter().map(String::as_str).collect();
    let words = match words.as_slice() {
        ["always" | "onsuccess", rest @ ..] => rest,
        all => all,
    };
    let response = directive.name == "header";
    let action = words.first().map(|action| action.to_ascii_lowercase()).unwrap_or_default();
    let name = words.get(1).copied().unwrap_or_default().trim_end_matches(':');
    let value = match (action.as_str(), words.get(2)) {
        ("unset", None) => Some(String::new()),
        ("set" | "add" | "setifempty", Some(value)) if words.len() == 3 => plain(value),
        _ => None,
    };
    let Some(value) = value.filter(|_| is_settable(name)) else {
        let text = "Kirin sets and removes complete fields: `append`, `merge`, `edit`, conditions \
                    and variables are not there";
        return (Vec::new(), Outcome::LeftOut(text.to_owned()));
    };
    let forwarded = ["x-forwarded-proto", "x-forwarded-for", "x-forwarded-host"];
    if !response && forwarded.contains(&name.to_ascii_lowercase().as_str()) {
        return (Vec::new(), Outcome::ByItself("Kirin writes this field itself".to_owned()));
    }
    let fields = Table::from_iter([(name.to_owned(), Value::from(value))]);
    let text = if response { "On errors, too." } else { "" };
    let effect = if response { Effect::Headers(fields) } else { Effect::RequestHeaders(fields) };
    (vec![effect], Outcome::Carried(text.to_owned()))
}

/// Returns a value without format specifiers of Apache.
fn plain(value: &str) -> Option<String> {
    let value = value.replace("%%", "\u{1}");
    let value = value.replace("%{REMOTE_ADDR}s", "\u{2}").replace("%{REQUEST_SCHEME}s", "\u{3}");
    if value.contains('%') {
        return None;
    }
    let value = without_variables(&value).replace('\u{1}', "%");
    Some(value.replace('\u{2}', "{client}").replace('\u{3}', "{scheme}"))
}

fn options(directive: &Directive) -> (Vec<Effect>, Outcome) {
    let mut keys = Section::default();
    let mut lacking = Vec::new();
    let absolute = directive.arguments.iter().all(|option| !option.starts_with(['+', '-']));
    if absolute {
        keys.set("listing", false);
        keys.set("follow_links", false);
    }
    for option in &directive.arguments {
        let (on, name) = match option.strip_prefix('-') {
            Some(name) => (false, name),
            None => (true, option.trim_start_matches('+')),
        };
        match name.to_ascii_lowercase().as_str() {
            "indexes" => keys.set("listing", on),
            "followsymlinks" => keys.set("follow_links", on),
            "symlinksifownermatch" if on => keys.set("follow_links", "owner"),
            "symlinksifownermatch" | "none" => {}
            "includes" | "includesnoexec" if on => keys.set("ssi", true),
            "all" => {
                keys.set("listing", true);
                keys.set("follow_links", true);
            }
            "multiviews" | "execcgi" if on => lacking.push(option.clone()),
            _ => {}
        }
    }
    let outcome = match lacking.as_slice() {
        [] => Outcome::Carried(String::new()),
        lacking => {
            let text = format!("without {}: programs have routes with `cgi:`", lacking.join(", "));
            Outcome::LeftOut(text)
        }
    };
    (vec![Effect::OfFiles(keys)], outcome)
}

fn error_document(directive: &Directive) -> Option<(Vec<Effect>, Outcome)> {
    let (status, page) = (directive.argument(0), directive.argument(1));
    let is_status =
        status.len() == 3 && status.starts_with(['4', '5']) && status.parse::<u16>().is_ok();
    if !is_status || !page.starts_with('/') || page.contains(['?', '%', '{']) {
        let text = "an error page is a path of the site with a file (docs/routes.md)";
        return Some((Vec::new(), Outcome::LeftOut(text.to_owned())));
    }
    let pages = Table::from_iter([(status.to_owned(), Value::from(page))]);
    let text = "The page is a file of the site.".to_owned();
    Some((vec![Effect::ErrorPages(pages)], Outcome::Carried(text)))
}

/// Reads `access plus 1 month` and `A3600`.
fn seconds(words: &[String]) -> Option<u64> {
    let text = words.join(" ");
    if let Some(seconds) = text.strip_prefix('A') {
        return seconds.parse().ok();
    }
    let rest = text.strip_prefix("access plus ").or(text.strip_prefix("access "))?;
    let mut words = rest.split_whitespace();
    let mut total = 0_u64;
    while let Some(number) = words.next() {
        let unit = words.next()?.trim_end_matches('s');
        let seconds = match unit {
            "second" => 1,
            "minute" => 60,
            "hour" => 3600,
            "day" => 86_400,
            "week" => 604_800,
            "month" => 2_592_000,
            "year" => 31_536_000,
            _ => return None,
        };
        total = total.checked_add(number.parse::<u64>().ok()?.checked_mul(seconds)?)?;
    }
    Some(total)
}

/// Directives that Kirin needs not, with why.
const BY_ITSELF: &[(&str, &str)] = &[
    ("loadmodule", "Kirin has no modules to load"),
    ("keepalive", "connections are kept"),
    ("timeout", "`body_timeout` and `write_timeout` of a listener are a minute"),
    ("servertokens", "Kirin sends no version"),
    ("serversignature", "Kirin sends no version"),
    ("traceenable", "TRACE is never answered"),
    ("hostnamelookups", "logs have addresses"),
    ("pidfile", "`kirin serve --pid-file FILE` writes one"),
    ("mutex", "Kirin needs none"),
    ("defaultruntimedir", "Kirin needs none"),
    ("accessfilename", "names that begin with a dot are hidden"),
    ("serveradmin", "Kirin's own pages have no address"),
    ("errorlog", "errors go to standard error"),
    ("loglevel", "`KIRIN_LOG` in the environment"),
    ("usecanonicalname", "the host is that of the request"),
    ("expiresactive", "there is no switch"),
    ("addencoding", "variants beside a file are sent"),
    ("addoutputfilterbytype", "files are compressed (docs/compression.md)"),
    ("deflatecompressionlevel", "files are compressed (docs/compression.md)"),
    ("setoutputfilter", "files are compressed (docs/compression.md)"),
    ("typesconfig", "common media types are known"),
    ("enablesendfile", "there is no switch"),
    ("enablemmap", "there is no switch"),
    ("fileetag", "files have an `ETag`"),
    ("namevirtualhost", "sites have hosts"),
    ("sslengine", "the listener has TLS"),
    ("directoryslash", "a directory is redirected to its `/`"),
    ("proxyrequests", "Kirin is no forward proxy"),
    ("proxypreservehost", "servers get the host of the client"),
    ("group", "the groups of the user are taken"),
];

/// What the names of further such directives begin with.
const PREFIXES: &[&str] = &[
    "sslprotocol",
    "sslcipher",
    "sslhonor",
    "sslsession",
    "sslrandom",
    "sslpass",
    "sslstapling",
    "sslusestapling",
    "sslcompression",
    "ssloptions",
    "sslopenssl",
    "maxkeepalive",
    "keepalivetimeout",
    "startservers",
    "minspare",
    "maxspare",
    "threadlimit",
    "threadsperchild",
    "serverlimit",
    "maxrequestworkers",
    "maxconnectionsperchild",
    "indexoptions",
    "addicon",
    "defaulticon",
    "readmename",
    "headername",
    "indexignore",
    "requestreadtimeout",
    "browsermatch",
    "graceful",
    "listenbacklog",
    "mimemagic",
    "languagepriority",
    "forcelanguage",
    "addlanguage",
    "addcharset",
];

/// Notes a directive that is of no route: with what Kirin does, or that it is not known.
pub(crate) fn note_other(directive: &Directive, draft: &mut Draft) {
    let by_itself = |name: &str| {
        let found = BY_ITSELF.iter().find(|(known, _)| *known == name).map(|(_, text)| *text);
        let by_prefix = PREFIXES.iter().any(|prefix| name.starts_with(prefix));
        found.or(by_prefix.then_some("Kirin has its own ways"))
    };
    let left_out = match directive.name.as_str() {
        "proxypassreverse" | "proxypassreversecookiepath" | "proxypassreversecookiedomain" => {
            "Kirin never changes `Location` and cookies. Servers get the host of the client, so \
             their URLs are right"
        }
        "setenv" | "setenvif" | "passenv" | "setenvifnocase" | "unsetenv" => {
            "write `env` of `cgi` or of an `[[app]]`"
        }
        "allowoverride" => "Kirin reads no `.htaccess`: what they protect must be in routes",
        "usecanonicalphysicalport" | "userdir" | "action" | "script" => "not there in Kirin",
        "if" | "elseif" | "else" => "write `match` of routes (docs/routes.md)",
        "macro" | "use" => "write the routes themselves",
        "addhandler" | "sethandler" => "programs have routes with `cgi:` (docs/cgi.md)",
        name if name.starts_with("perl") => {
            "run the application by `plackup -s Kirin`, or as an `[[app]]` (docs/perl.md)"
        }
        name if name.starts_with("wsgi") => {
            "run the application in a server, and write an upstream (docs/proxy.md)"
        }
        name if name.starts_with("php") => "write it into the pool of php-fpm",
        name if name.starts_with("cache") => "write `cache` of a route (docs/cache.md)",
        name if name.starts_with("dav") => "WebDAV is not there",
        name if name.starts_with("sec") => "PROTECTION NOT CARRIED OVER: ModSecurity is not there",
        _ => "not known here",
    };
    match by_itself(&directive.name) {
        Some(text) => draft.notes.by_itself(&directive.place, &directive.line, text),
        None => draft.notes.left_out(&directive.place, &directive.line, left_out),
    }
}
