//! `kirin explain`, through the built program: what it says is what the server does.

use kirin_tests::{Kirin, Memcached, Reply, Site, run_kirin};

const APP: &str = r#"
sub {
    my $env = shift;
    my @fields = ('Content-Type' => 'text/plain');
    push @fields, 'Cache-Control' => 'max-age=600', 'Surrogate-Key' => 'blue' if $env->{PATH_INFO} =~ /kept/;
    push @fields, 'Vary' => 'Accept-Language' if $env->{PATH_INFO} =~ /vary/;
    return [200, \@fields, ["secret of the application"]];
};
"#;

const CONFIG: &str = r#"
[[listener]]
address = "127.0.0.1:0"
[store]
memory = "16MB"
memcached = ["unix:m.sock"]
[admin]
address = "unix:admin.sock"
[[app]]
name = "web"
load = "app.psgi"
workers = 1

[[site]]
hosts = ["a.test", "*.a.test"]
[[site.route]]
path = "/"
try = ["store", "files:public"]
[[site.route]]
path = "/app"
try = ["store", "app:web"]
cache = true
[[site.route]]
path = "/app/{id}"
match = { headers = { "X-Beta" = "1" } }
try = ["files:public"]
rewrite = "/beta"
[[site.route]]
path = "/mine"
allow = ["10.0.0.0/8"]
try = ["files:public"]
[[site.route]]
path = "/ours"
allow = ["127.0.0.0/8"]
try = ["files:public"]
rewrite = "/"
[[site.route]]
path = "/password"
basic_auth = "users"
try = ["store"]
[[site.route]]
path = "/late"
maintenance = true
try = ["files:public"]
[[site.route]]
path = "/old"
redirect = "/new"
[[site.route]]
path = "/form"
match = { methods = ["POST"] }
redirect = "/done"

[[site]]
hosts = ["b.test"]
name = "bee"
[[site.route]]
path = "/only"
try = ["store"]

[[site]]
hosts = ["see.*", '~^www\d+[.]see[.]test$']
name = "see"
[[site.route]]
path = "/"
try = ["store"]
"#;

const USERS: &str = "a:$2y$05$abcdefghijklmnopqrstuuJ0zBPXqV1HjPzFbMPjOjTzjTzjTzjTy\n";

fn site() -> Site {
    Site::new()
        .with("app.psgi", APP)
        .with("users", USERS)
        .with("public/there", "x")
        .with("public/index.html", "x")
        .with("public/beta/1", "x")
        .with("kirin.toml", CONFIG)
}

/// Returns what the command prints. It must succeed.
fn explain(site: &Site, arguments: &[&str]) -> String {
    let output = run_kirin(site, &[&["explain"], arguments].concat());
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success() && output.stderr.is_empty(),
        "{arguments:?}: {text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    text
}

fn ask(kirin: &Kirin, method: &str, host: &str, target: &str, fields: &str) -> Reply {
    let mut client = kirin.connect();
    client.send(format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\n{fields}\r\n"));
    client.read_reply()
}

#[test]
fn a_url_alone_is_a_get() {
    let site = site();
    let url = "http://a.test/form";
    let said = explain(&site, &[url]);
    assert!(said.contains("method is `GET`"), "{said}");
    assert_eq!(said, explain(&site, &["GET", url]));
}

#[test]
fn the_server_does_what_the_explanation_says() {
    let site = site();
    let kirin = Kirin::start(&site, CONFIG);
    for (method, host, target, header, part, status, location) in [
        ("GET", "a.test", "/there", "", "public/there (now: 200", 200, None),
        ("GET", "A.test.", "/z/../there", "", "public/there (now: 200", 200, None),
        ("GET", "x.a.test", "/not", "", "otherwise 404\n", 404, None),
        ("GET", "c.test", "/there", "", "none has the host `c.test`: 421", 421, None),
        ("GET", "b.test", "/there", "", "route       none: 404", 404, None),
        ("GET", "a.test", "/app/1", "", "not /app/{id} with header x-beta", 200, None),
        ("GET", "a.test", "/app/9/1", "X-Beta: 1", "places look for /beta/1\n", 200, None),
        ("GET", "a.test", "/app/9", "X-Beta: 1", "public/beta (now: not there)", 404, None),
        ("GET", "a.test", "/app/1", "X-Beta: 2", "header `x-beta` is `2`", 200, None),
        ("GET", "a.test", "/mine", "", "allow: 403: 127.0.0.1 is not one of", 403, None),
        ("GET", "a.test", "/ours/there", "", "allow: 127.0.0.1 is served", 200, None),
        ("GET", "a.test", "/ours", "", "(now: 301 to /ours/)", 301, Some("/ours/")),
        ("GET", "a.test", "/password", "", "basic_auth: 401", 401, None),
        ("GET", "a.test", "/late", "", "maintenance: 503", 503, None),
        ("GET", "a.test", "/old/x?y", "", "308 to /new/x?y\n", 308, Some("/new/x?y")),
        ("POST", "a.test", "/form", "", "308 to /done\n", 308, Some("/done")),
        ("GET", "a.test", "/form", "", "not /form with method `POST`: method is `GET`", 404, None),
        ("POST", "a.test", "/there", "", "otherwise 405", 405, None),
    ] {
        let url = format!("http://{host}{target}");
        let (field, option) = match header {
            "" => (String::new(), vec![]),
            header => (format!("{header}\r\n"), vec!["-H", header]),
        };
        let text = explain(&site, &[&[method, &url][..], &option].concat());
        assert!(text.contains(part), "{part}\n{text}");
        let reply = ask(&kirin, method, host, target, &field);
        assert_eq!((reply.status, reply.field("location")), (status, location), "{text}");
    }
}

#[test]
fn a_running_kirin_says_what_its_store_has_and_not_what_is_in_it() {
    let site = site();
    let kirin = Kirin::start(&site, CONFIG);
    let there = |url: &str, option: &[&str]| explain(&site, &[&["GET", url], option].concat());
    let assert_has = |text: &str, parts: &[&str]| {
        for part in parts {
            assert!(text.contains(part), "{part}\n{text}");
        }
        assert!(!text.contains("secret"), "{text}");
    };
    let nothing = ["store: there is no page", "cache: there is no response", "Kirin at unix:"];
    for path in ["kept", "vary-kept", "passing"] {
        assert_has(&there(&format!("http://a.test/app/{path}"), &[]), &nothing);
    }
    let mut memcached = Memcached::connect(&site.path("m.sock"));
    for key in ["x.a.test:/page", "bee:/only"] {
        memcached.send(format!("ms {key} 19 T600 Ptags=red\r\ntext/html\r\nsecret..\r\n"));
        assert_eq!(memcached.line(), "HD");
    }
    memcached.send("ms a.test:/piece 8\r\nsecret..\r\n");
    assert_eq!(memcached.line(), "HD");
    let gets = |memcached: &mut Memcached| {
        memcached.send("mg x.a.test:/page h\r\n");
        memcached.line()
    };
    let page = there("http://x.a.test/page", &[]);
    assert_has(&page, &["key `x.a.test:/page`", "store: 200, text/html, 19 bytes, expires in "]);
    assert_has(&page, &["tags red"]);
    // The command was no access.
    assert_eq!(gets(&mut memcached), "HD h0");
    assert_has(&there("http://a.test/page", &[]), &["store: there is no page"]);
    assert_has(&there("http://b.test/only", &[]), &["`bee:/only`", "store: 200, text/html"]);
    assert_has(&there("http://a.test/piece", &[]), &["8 bytes, never expires; it has no head"]);

    assert_eq!(ask(&kirin, "GET", "a.test", "/app/kept?x", "").status, 200);
    let kept = there("http://a.test/app/kept?x", &[]);
    assert_has(
        &kept,
        &["cache: 200, text/plain", "tags a.test:blue", "fresh: it answers the request"],
    );
    assert_has(&kept, &["fresh for "]);
    for (url, option, part) in [
        ("http://a.test/app/kept", &[][..], "cache: there is no response"),
        ("http://x.a.test/app/kept?x", &[], "cache: there is no response"),
        ("https://a.test/app/kept?x", &[], "cache: there is no response"),
        ("http://a.test:81/app/kept?x", &[], "cache: there is no response"),
        ("http://a.test:80/app/kept?x", &[], "fresh: it answers the request"),
        (
            "http://a.test/app/kept?x",
            &["-H", "Cookie: a=b"],
            "not for this request: it has a cookie",
        ),
    ] {
        assert_has(&there(url, option), &[part]);
    }

    let in_german = "Accept-Language: de\r\n";
    assert_eq!(ask(&kirin, "GET", "a.test", "/app/vary-kept", in_german).status, 200);
    let other = there("http://a.test/app/vary-kept", &["-H", "Accept-Language: en"]);
    assert_has(&other, &["responses vary by accept-language; none is for this request"]);
    let same = there("http://a.test/app/vary-kept", &["-H", "Accept-Language: de"]);
    assert_has(&same, &["fresh: it answers the request", "cache: varies by accept-language"]);

    let purged = run_kirin(&site, &["purge", "--tag", "blue", "--site", "a.test", "--soft"]);
    assert!(purged.status.success(), "{purged:?}");
    assert_has(
        &there("http://a.test/app/kept?x", &[]),
        &[", stale, tags", "stale: it must be validated first", "stale for 0 s"],
    );
}

#[test]
fn a_page_stored_for_a_password_is_reported_as_protected() {
    let site = site();
    let kirin = Kirin::start(&site, CONFIG);
    let page = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nKirin-Protection: password=0000000000000001\r\n\r\n";
    let mut memcached = Memcached::connect(&site.path("m.sock"));
    memcached.send(format!("ms a.test:/there {}\r\n{page}\r\n", page.len()));
    assert_eq!(memcached.line(), "HD");
    let text = explain(&site, &["GET", "http://a.test/there"]);
    assert!(text.contains("protected by password, which this route does not pass"), "{text}");
    assert_eq!(ask(&kirin, "GET", "a.test", "/there", "").text(), "x");
}

#[test]
fn the_wildcard_or_the_regular_expression_that_has_matched_is_named() {
    let site = site();
    for (host, entry) in [
        ("See.example", "see.*"),
        ("see.co.test", "see.*"),
        ("www12.see.test", r"~^www\d+[.]see[.]test$"),
    ] {
        let text = explain(&site, &["GET", &format!("http://{host}/")]);
        let host = host.to_lowercase();
        assert!(text.contains(&format!("`{host}` matches `{entry}` of `hosts`")), "{text}");
        assert!(text.contains("keys in the store begin with `see:`"), "{text}");
    }
    let text = explain(&site, &["GET", "http://www.see.test/"]);
    assert!(text.contains("421"), "{text}");
}

#[test]
fn without_a_running_kirin_the_rest_is_explained() {
    let site = site();
    let text = explain(&site, &["GET", "http://a.test/there"]);
    assert!(text.contains("places ") && text.contains("no Kirin answers at unix:"), "{text}");
    let text = explain(&site, &["GET", "http://a.test/there", "--admin", "unix:other.sock"]);
    assert!(text.contains("no Kirin answers at unix:other.sock"), "{text}");
    for (arguments, code, message) in [
        (&["GET", "a.test/there"][..], 1, "allowed is http://HOST/PATH"),
        (&["get", "http://a.test/"], 1, "write `GET`"),
        (&["GET", "http://a.test/", "-H", "X"], 1, "`Name: value`"),
        (&["GET", "http://a.test/", "--config", "none.toml"], 1, "none.toml"),
        (&["GET"], 1, "the URL after it is missing"),
        (&[], 2, "<URL>"),
    ] {
        let output = run_kirin(&site, &[&["explain"], arguments].concat());
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        assert!(said.contains(message) && output.stdout.is_empty(), "{arguments:?}: {said}");
    }
}

#[test]
fn the_endpoint_takes_questions_as_json_only() {
    let site = site();
    let _kirin = Kirin::start(&site, CONFIG);
    for (media_type, body, status) in [
        ("application/json", "{}", "200"),
        ("application/json", r#"{"page": "/x", "cached": null}"#, "200"),
        ("application/json", r#"{"pages": "/x"}"#, "400"),
        ("application/json", "nonsense", "400"),
        ("text/plain", "{}", "415"),
    ] {
        use std::io::{Read, Write};
        let path = site.path("admin.sock");
        let mut stream = std::os::unix::net::UnixStream::connect(path).expect("a connection");
        let length = body.len();
        let request = format!(
            "POST /explain HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: {media_type}\r\n\
             Content-Length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).expect("sent");
        let mut reply = String::new();
        stream.read_to_string(&mut reply).expect("a response");
        assert_eq!(reply.get(9..12), Some(status), "{media_type} {body}: {reply}");
    }
}
