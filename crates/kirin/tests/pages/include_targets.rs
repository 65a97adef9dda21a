//! Visitor text never chooses the part that a page includes. The tests use all variables, in both
//! languages, in a path and in a query.

use kirin_tests::{Kirin, Memcached, Site};

const CONFIG: &str = "[[listener]]\naddress = \"127.0.0.1:0\"\n[store]\nmemory = \"16MB\"\nmemcached = [\"unix:m.sock\"]\n\
    session_cookie = \"sid\"\n[[route]]\npath = \"/\"\ntry = [\"store\", \"files:public\", \"lua:part.lua\"]\nssi = true\nesi = true\n\
    [[route]]\npath = \"/secret\"\ntry = [\"lua:secret.lua\"]\n";

/// An application that shows the requested part. Its response is not HTML, so values stay
/// unchanged.
const PART: &str = r#"
return function(request)
    return { headers = { ["Content-Type"] = "text/plain" }, body = "part " .. request.path .. " ? " .. (request.query or "") }
end
"#;

const SECRET: &str = r#"
return function(request)
    return { headers = { ["Content-Type"] = "text/plain" }, body = "SECRET" }
end
"#;

/// Attacks, in a form that fits a query and a field.
const HOSTILE: &[&str] = &[
    "../secret/x",
    "../../secret/x",
    "%2e%2e/secret/x",
    "..%2fsecret%2fx",
    "%2E%2E%2Fsecret",
    "..",
    "%2e%2e",
    ".%2e",
    "/secret",
    "//secret",
    "/../../secret",
    "x/../../secret",
    "..\\secret",
    "..%5csecret",
    "?/secret",
    "%3f",
    "#",
    "x%23y",
    "%00",
    "http://test/secret",
    "//test/secret",
    "%252e%252e%252fsecret",
    "&secret=1",
    "%26secret=1",
];

/// Variables of SSI, their ESI names, and whether a request can carry any value in them.
const VARIABLES: &[(&str, &str)] = &[
    ("$arg_a", "$(QUERY_STRING{a})"),
    ("$args", "$(QUERY_STRING)"),
    ("$query_string", "$(ARGS)"),
    ("$query_string_unescaped", "$(QUERY_STRING_UNESCAPED)"),
    ("$cookie_a", "$(HTTP_COOKIE{a})"),
    ("$http_cookie", "$(HTTP_COOKIE)"),
    ("$http_x_a", "$(HTTP_X_A)"),
    ("$http_referer", "$(HTTP_REFERER)"),
    ("$http_user_agent", "$(HTTP_USER_AGENT)"),
    ("${session.name}", "$(SESSION{name})"),
    ("$request_uri", "$(REQUEST_URI)"),
    ("$uri", "$(URI)"),
    ("$document_uri", "$(DOCUMENT_URI)"),
    ("$document_name", "$(DOCUMENT_NAME)"),
    ("$request", "$(REQUEST)"),
    ("$http_host", "$(HTTP_HOST)"),
    ("$host", "$(HOST)"),
    ("$remote_user", "$(REMOTE_USER)"),
    ("$remote_addr", "$(REMOTE_ADDR)"),
];

fn serve() -> (Site, Kirin) {
    let site =
        Site::new().with("part.lua", PART).with("secret.lua", SECRET).with("public/none", "");
    let kirin = Kirin::start(&site, CONFIG);
    (site, kirin)
}

/// Removes bytes that a field's value cannot contain.
fn fields(value: &str) -> String {
    format!(
        "Cookie: a={value}; sid=visitor\r\nX-A: {value}\r\nReferer: {value}\r\nUser-Agent: {value}\r\n"
    )
}

/// Encodes a value for a request line.
fn in_target(value: &str) -> String {
    value.replace('#', "%23").replace('\\', "%5C")
}

#[test]
fn no_variable_leads_to_another_part() {
    let (site, kirin) = serve();
    let mut memcached = Memcached::connect(&site.path("m.sock"));
    let mut client = kirin.connect();
    for (ssi, esi) in VARIABLES {
        let in_path = |name: &str| format!("/p/{name}/end");
        let in_query = |name: &str| format!("/p/q/end?x={name}&y=1");
        let parts = [
            format!("<!--# include virtual=\"{}\" -->", in_path(ssi)),
            format!("<!--# include virtual=\"{}\" wait=\"yes\" -->", in_path(ssi)),
            format!(
                "<!--# set var=\"t\" value=\"{ssi}\" --><!--# include virtual=\"{}\" -->",
                in_path("$t")
            ),
            format!(
                "<!--# if expr=\"{ssi} = /^(.*)\\$/\" --><!--# endif --><!--# include virtual=\"{}\" -->",
                in_path("$1")
            ),
            format!("<!--# include file=\"p/{ssi}/end\" -->"),
            format!("<esi:include src=\"{}\"/>", in_path(esi)),
            format!("<esi:include src=\"http://other.example/\" alt=\"{}\"/>", in_path(esi)),
            format!("<!--# include virtual=\"{}\" -->", in_query(ssi)),
            format!("<esi:include src=\"{}\"/>", in_query(esi)),
        ];
        let page = parts.map(|part| format!("[{part}]")).join("\n");
        for value in HOSTILE {
            memcached.set(
                "visitor",
                format!("{{\"name\":\"{}\"}}", value.replace('\\', "\\\\")).as_bytes(),
            );
            let target = format!("/page?a={}", in_target(value));
            memcached.set(&target, format!("text/html\r\n{page}").as_bytes());
            let reply = client.request("GET", &target, &fields(value));
            let text = reply.text();
            assert_eq!(reply.status, 200, "{ssi} {value}: {text}");
            assert!(!text.contains("SECRET"), "{ssi} {value}: {text}");
            for (number, line) in text.split("]\n[").enumerate() {
                let line = line.trim_start_matches('[').trim_end_matches(']');
                let Some(asked) = line.strip_prefix("part ") else {
                    assert!(line.contains("an error occurred"), "{ssi} {value}: {line}");
                    continue;
                };
                let (path, query) = asked.split_once(" ? ").expect("a path and a query");
                let is_path_itself = matches!(*ssi, "$uri" | "$document_uri" | "$request_uri");
                assert!(path.starts_with("/p/"), "{ssi} {value}: {line}");
                if number >= 7 {
                    let is_query_itself = matches!(*ssi, "$args" | "$query_string");
                    assert_eq!(path, "/p/q/end", "{ssi} {value}: {line}");
                    assert!(
                        query.starts_with("x=") && query.ends_with("&y=1"),
                        "{ssi} {value}: {line}"
                    );
                    assert!(
                        is_query_itself || query.matches('&').count() == 1,
                        "{ssi} {value}: {line}"
                    );
                } else if !is_path_itself {
                    assert!(path.ends_with("/end") || path == "/p/end", "{ssi} {value}: {line}");
                    assert!(path.matches('/').count() <= 3, "{ssi} {value}: {line}");
                }
            }
        }
    }
}

#[test]
fn harmless_values_arrive_unchanged() {
    let (site, kirin) = serve();
    let mut memcached = Memcached::connect(&site.path("m.sock"));
    let mut client = kirin.connect();
    for (ssi, esi, asked) in [
        ("/p/$arg_a", "/p/$(QUERY_STRING{a})", "/p/b c ? "),
        ("/p/$cookie_a", "/p/$(HTTP_COOKIE{a})", "/p/b,c@d ? "),
        ("/p?x=$arg_a", "/p?x=$(QUERY_STRING{a})", "/p ? x=b%20c"),
        ("/p$is_args$args", "/p?$(QUERY_STRING)", "/p ? a=b%20c&d=e/f"),
        ("/p$uri", "/p$(URI)", "/p/some/page ? "),
        ("/p$request_uri", "/p$(REQUEST_URI)", "/p/some/page ? a=b%20c&d=e/f"),
        ("http://$http_host/p", "http://$(HTTP_HOST)/p", "/p ? "),
    ] {
        let page = format!(
            "text/html\r\n<!--# include virtual=\"{ssi}\" -->|<esi:include src=\"{esi}\"/>|"
        );
        memcached.set("/some/page?a=b%20c&d=e/f", page.as_bytes());
        let reply = client.request("GET", "/some/page?a=b%20c&d=e/f", "Cookie: a=b,c@d\r\n");
        assert_eq!(reply.text(), format!("part {asked}|part {asked}|"), "{ssi}");
    }
}
