//! `auth_request`: another program decides who may see a route, through the built program.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use kirin_tests::{
    Backend, Http2Client, Kirin, LeasedPort, ReceivedRequest, Reply, Site, wait_for,
};

/// Answers as `X-Verdict` of the request says: a status, and perhaps field lines behind it.
fn authority() -> Backend {
    Backend::answering(|asked| {
        let verdict = asked.field("x-verdict").unwrap_or("401");
        let (status, fields) = verdict.split_once(' ').unwrap_or((verdict, ""));
        let fields: String = fields
            .split('|')
            .filter(|line| !line.is_empty())
            .map(|line| format!("{line}\r\n"))
            .collect();
        let body = format!("verdict on {}", asked.head);
        let length = body.len();
        match status {
            "204" | "304" => format!("HTTP/1.1 {status} Verdict\r\n{fields}\r\n"),
            _ => format!(
                "HTTP/1.1 {status} Verdict\r\nContent-Length: {length}\r\n{fields}\r\n{body}"
            ),
        }
    })
}

/// Answers with what it has received.
fn application() -> Backend {
    Backend::answering(|asked: &ReceivedRequest| {
        let trailers: String =
            asked.trailers.iter().map(|line| format!("trailer: {line}\n")).collect();
        let body = format!("{}\n{trailers}\n{}", asked.head, String::from_utf8_lossy(&asked.body));
        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())
    })
}

struct Running {
    kirin: Kirin,
    authority: Backend,
    _application: Backend,
    _site: Site,
}

/// Serves `routes` with the upstreams `auth` and `web`, and the applications `env` and `psgi-auth`.
fn serve(site: Site, routes: &str) -> Running {
    let (authority, application) = (authority(), application());
    let config = format!(
        "threads = 1\n[[listener]]\naddress = \"127.0.0.1:0\"\n[store]\nmemory = \"16MB\"\n\
         [[upstream]]\nname = \"auth\"\nservers = [\"{}\"]\nfirst_byte_timeout = \"30s\"\n\
         [[upstream]]\nname = \"web\"\nservers = [\"{}\"]\n{routes}",
        authority.address(),
        application.address()
    );
    let kirin = Kirin::start(&site, &config);
    Running { kirin, authority, _application: application, _site: site }
}

fn ask(running: &Running, target: &str, fields: &str) -> Reply {
    running.kirin.connect().request("GET", target, fields)
}

/// The routes of most tests: `/private` asks a route, `/direct` asks the upstream itself.
const ROUTES: &str = r#"
[[route]]
path = "/private"
try = ["proxy:web"]
auth_request = { ask = "/auth", fields = ["Remote-User", "X-Groups", "X-Plain"] }
[[route]]
path = "/direct"
try = ["proxy:web"]
auth_request = { ask = "proxy:auth", path = "/verify?realm=1", fields = ["Remote-User", "X-Groups", "X-Plain"], response_fields = ["Set-Cookie"] }
[[route]]
path = "/auth"
try = ["proxy:auth"]
[[route]]
path = "/files"
try = ["files:public"]
auth_request = "/auth"
[[route]]
path = "/open"
try = ["files:public"]
ssi = true
"#;

#[test]
fn a_request_passes_only_if_the_program_answers_2xx() {
    let running = serve(Site::new().with("public/files/a.txt", "secret"), ROUTES);
    for (verdict, expected) in [
        ("200", 200),
        ("204", 200),
        ("299", 200),
        ("401 WWW-Authenticate: Bearer", 401),
        ("403", 403),
        ("302 Location: https://sso.example.org/?a=b", 302),
        ("307 Location: /login", 307),
        ("304", 500),
        ("404", 500),
        ("500", 500),
        ("503 Retry-After: 7", 503),
    ] {
        for target in ["/private/x", "/direct/x", "/files/a.txt", "/files/../files//%61.txt"] {
            let reply = ask(&running, target, &format!("X-Verdict: {verdict}\r\n"));
            assert_eq!(reply.status, expected, "{target} {verdict}: {}", reply.head);
            let is_shown = reply.text().contains("secret") || reply.text().contains("GET /private");
            if expected != 200 {
                assert!(!reply.text().contains("secret"), "{target} {verdict}");
            } else {
                assert!(is_shown || target == "/direct/x", "{target} {verdict}: {}", reply.text());
            }
            let fields = ["www-authenticate", "location", "retry-after"];
            for name in fields {
                let is_sent = verdict.to_ascii_lowercase().contains(name);
                assert_eq!(reply.field(name).is_some(), is_sent, "{verdict}: {}", reply.head);
            }
        }
    }
    // HEAD, a range and a condition pass the same way.
    let refused = "X-Verdict: 403\r\n";
    let mut client = running.kirin.connect();
    client.send(format!("HEAD /files/a.txt HTTP/1.1\r\nHost: a\r\n{refused}\r\n"));
    assert_eq!(client.read_head_reply().status, 403);
    assert_eq!(
        ask(&running, "/files/a.txt", &format!("{refused}Range: bytes=0-1\r\n")).status,
        403
    );
    assert_eq!(
        ask(&running, "/files/a.txt", &format!("{refused}If-None-Match: *\r\n")).status,
        403
    );
    let passed = "X-Verdict: 204\r\n";
    let part = ask(&running, "/files/a.txt", &format!("{passed}Range: bytes=0-1\r\n"));
    assert_eq!((part.status, part.text().as_str()), (206, "se"));
}

#[test]
fn the_program_sees_the_request_without_its_body() {
    let running = serve(Site::new().with("public/x", ""), ROUTES);
    for (target, asked) in
        [("/private//x/../%79?q=1", "/auth"), ("/direct//x/../%79?q=1", "/verify?realm=1")]
    {
        let mut client = running.kirin.connect();
        let fields = "Cookie: a=b\r\nAuthorization: Bearer t\r\nX-Verdict: 403\r\nX-Original-URI: /open\r\n\
                      X-Forwarded-Uri: /open\r\nX-Forwarded-Method: GET\r\nIf-Match: \"x\"\r\nRange: bytes=0-1\r\n";
        client.send(format!(
            "POST {target} HTTP/1.1\r\nHost: h.example\r\nContent-Length: 5\r\n{fields}\r\nhello"
        ));
        let reply = client.read_reply();
        assert_eq!(reply.status, 403, "{}", reply.head);
        let sent = reply.text();
        assert!(sent.contains(&format!("verdict on GET {asked} HTTP/1.1")), "{sent}");
        for line in [
            "Host: h.example",
            "Cookie: a=b",
            "Authorization: Bearer t",
            "X-Forwarded-Method: POST",
            "X-Forwarded-Proto: http",
            "X-Forwarded-Host: h.example",
            "X-Forwarded-For: 127.0.0.1",
            "X-Original-Method: POST",
        ] {
            assert_eq!(sent.lines().filter(|sent| *sent == line).count(), 1, "{line}: {sent}");
        }
        let path = target.split("//").next().unwrap_or_default();
        for name in ["X-Forwarded-Uri", "X-Original-URI"] {
            assert!(sent.contains(&format!("{name}: {path}/y?q=1\r\n")), "{name}: {sent}");
            assert_eq!(sent.matches(&format!("{name}:")).count(), 1, "{sent}");
        }
        assert!(
            sent.contains(&format!("X-Original-URL: http://h.example{path}/y?q=1\r\n")),
            "{sent}"
        );
        for name in ["Content-Length", "If-Match", "Range", "Transfer-Encoding"] {
            assert!(!sent.contains(&format!("{name}:")), "{name}: {sent}");
        }
    }
}

#[test]
fn fields_of_the_answer_replace_those_of_the_client() {
    let running = serve(Site::new().with("public/x", ""), ROUTES);
    let forged = "Remote-User: root\r\nREMOTE-USER: root\r\nX-Groups: wheel\r\nx_groups: wheel\r\nX-Plain: forged\r\n\
                  Connection: X-Plain, Remote-User, X-Groups\r\n";
    for target in ["/private/x", "/direct/x"] {
        let granted =
            "X-Verdict: 200 Remote-User: mari|X-Plain: 1|X-Plain: 2|X-Plain: 1|X-Other: no\r\n";
        let sent = ask(&running, target, &format!("{granted}{forged}")).text();
        let lines = |name: &str| {
            let lines = sent.lines().filter(|line| line.to_ascii_lowercase().starts_with(name));
            lines.map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(lines("remote-user:"), ["Remote-User: mari"], "{sent}");
        assert_eq!(lines("x-plain:"), ["X-Plain: 1", "X-Plain: 2"], "{sent}");
        assert!(
            !sent.contains("wheel") && !sent.contains("root") && !sent.contains("forged"),
            "{sent}"
        );
        assert!(lines("x-other").is_empty(), "{sent}");
        // An answer without the fields removes them.
        let sent = ask(&running, target, &format!("X-Verdict: 204\r\n{forged}")).text();
        assert!(
            !sent.contains("wheel") && !sent.contains("root") && !sent.contains("forged"),
            "{sent}"
        );
    }
    let reply = ask(
        &running,
        "/direct/x",
        "X-Verdict: 200 Set-Cookie: a=1|Set-Cookie: b=2|X-Secret: s\r\n",
    );
    let cookies: Vec<_> =
        reply.head.lines().filter(|line| line.starts_with("Set-Cookie")).collect();
    assert_eq!(cookies, ["Set-Cookie: a=1", "Set-Cookie: b=2"], "{}", reply.head);
    assert!(!reply.head.contains("X-Secret"), "{}", reply.head);
    // The connection to the program is used again, though its answers had bodies.
    assert!(
        running.authority.connections() <= 2,
        "{} connections",
        running.authority.connections()
    );
}

#[test]
fn the_body_goes_to_the_place_after_the_verdict() {
    let running = serve(Site::new().with("public/x", ""), ROUTES);
    let body = "b".repeat(200_000);
    for framing in ["Content-Length: 200000", "Transfer-Encoding: chunked"] {
        let mut client = running.kirin.connect();
        client.send(format!(
            "PUT /private/x HTTP/1.1\r\nHost: a\r\n{framing}\r\nX-Verdict: 200\r\n\r\n"
        ));
        match framing.starts_with("Content") {
            true => client.send(&body),
            false => client.send(format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len())),
        };
        let sent = client.read_reply().text();
        assert!(sent.starts_with("PUT /private/x HTTP/1.1"), "{framing}");
        assert!(sent.ends_with(&body), "{framing}: {} bytes", sent.len());
    }
    // A client that waits for 100 gets the refusal, and sends no body.
    let mut client = running.kirin.connect();
    client.send("PUT /private/x HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\nExpect: 100-continue\r\nX-Verdict: 403\r\n\r\n");
    assert_eq!(client.read_reply().status, 403);
    // HTTP/2 has the same rules.
    let mut client = Http2Client::connect(running.kirin.address());
    let reply = client.request(
        "GET",
        "/private/x",
        &[("x-verdict", "200 Remote-User: mari"), ("remote-user", "root")],
    );
    assert!(
        reply.text().contains("Remote-User: mari") && !reply.text().contains("root"),
        "{}",
        reply.text()
    );
    let reply = client.request("GET", "/private/x", &[("x-verdict", "403")]);
    assert_eq!(reply.status, 403);
}

#[test]
fn an_upgrade_needs_the_verdict_too() {
    let running = serve(Site::new().with("public/x", ""), ROUTES);
    let upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\n";
    let refused = ask(&running, "/private/socket", &format!("{upgrade}X-Verdict: 401\r\n"));
    assert_eq!(refused.status, 401);
    let sent = ask(&running, "/private/socket", &format!("{upgrade}X-Verdict: 200\r\n")).text();
    assert!(sent.contains("Upgrade: websocket"), "the place sees the upgrade: {sent}");
}

#[test]
fn a_program_that_fails_lets_nobody_pass() {
    let closing = Backend::start(|mut connection| {
        connection.read_request();
        connection.send("HTTP/1.1 200 OK\r\nContent-Le");
        connection.end();
    });
    let silent = Backend::start(|mut connection| {
        connection.read_request();
        connection.wait_for_end();
    });
    let port = LeasedPort::lease();
    let site = Site::new()
        .with("public/x", "secret")
        .with("public/page.html", "[<!--# include virtual=\"/a/x\" -->]");
    let config = format!(
        "[[listener]]\naddress = \"127.0.0.1:0\"\n\
         [[upstream]]\nname = \"closing\"\nservers = [\"{}\"]\n\
         [[upstream]]\nname = \"silent\"\nservers = [\"{}\"]\nfirst_byte_timeout = \"1s\"\n\
         [[upstream]]\nname = \"away\"\nservers = [\"{}\"]\n\
         [[route]]\npath = \"/a\"\ntry = [\"files:public\"]\nrewrite = \"/\"\nauth_request = \"proxy:closing\"\n\
         [[route]]\npath = \"/b\"\ntry = [\"files:public\"]\nrewrite = \"/\"\nauth_request = \"proxy:silent\"\n\
         [[route]]\npath = \"/c\"\ntry = [\"files:public\"]\nrewrite = \"/\"\nauth_request = \"proxy:away\"\n\
         error_pages = {{ 5xx = \"/sorry\" }}\n\
         [[route]]\npath = \"/\"\ntry = [\"files:public\"]\nssi = true\n",
        closing.address(),
        silent.address(),
        port.address()
    );
    let site = site.with("public/sorry", "sorry");
    let kirin = Kirin::start(&site, &config);
    for (target, expected) in [("/a/x", 502), ("/b/x", 504), ("/c/x", 502)] {
        let reply = kirin.get(target);
        assert_eq!(reply.status, expected, "{target}: {}", reply.text());
        assert!(!reply.text().contains("secret"), "{target}");
    }
    assert_eq!(kirin.get("/c/x").text(), "sorry");
    kirin.wait_for_log("auth_request: proxy:away for / has not decided");
    let page = kirin.get("/page.html");
    assert!(page.status == 200 && !page.text().contains("secret"), "{}", page.text());
}

#[test]
fn pages_and_trailers_have_the_fields_of_the_answer_only() {
    let page = "<!--# echo var=\"http_x_groups\" default=\"-\" -->|<!--# echo var=\"http_remote_user\" default=\"-\" -->";
    let running = serve(
        Site::new().with("public/x", "").with("public/page.html", page),
        &format!(
            "{ROUTES}[[route]]\npath = \"/pages\"\ntry = [\"files:public\"]\nrewrite = \"/\"\nssi = true\n\
             auth_request = {{ ask = \"/auth\", fields = [\"Remote-User\", \"X-Groups\"] }}\n"
        ),
    );
    let forged = "X_Groups: wheel\r\nRemote_User: root\r\nRemote-User: root\r\n";
    for (verdict, expected) in
        [("200 Remote-User: mari|X-Groups: users", "users|mari"), ("204", "-|-")]
    {
        let fields = format!("X-Verdict: {verdict}\r\n{forged}");
        assert_eq!(ask(&running, "/pages/page.html", &fields).text(), expected, "{verdict}");
    }
    let mut client = running.kirin.connect();
    client.send(
        "POST /private/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTE: trailers\r\n\
         Trailer: X-Groups, X-Own\r\nX-Verdict: 204\r\n\r\n1\r\na\r\n0\r\nX-Groups: wheel\r\nX-Own: 1\r\n\r\n",
    );
    let sent = client.read_reply().text();
    assert!(sent.contains("trailer: X-Own: 1") || sent.contains("trailer: x-own: 1"), "{sent}");
    assert!(!sent.contains("wheel"), "{sent}");
}

#[test]
fn the_program_is_asked_for_no_client_that_has_gone() {
    let (silent, served) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (asked, ended) = (Arc::clone(&silent), Arc::clone(&served));
    let authority = Backend::start(move |mut connection| {
        connection.read_request();
        asked.fetch_add(1, Ordering::SeqCst);
        connection.wait_for_end();
        ended.fetch_add(1, Ordering::SeqCst);
    });
    let site = Site::new().with("public/x", "secret");
    let kirin = Kirin::start(
        &site,
        &format!(
            "[[listener]]\naddress = \"127.0.0.1:0\"\n[[upstream]]\nname = \"auth\"\nservers = [\"{}\"]\n\
             [[route]]\npath = \"/\"\ntry = [\"files:public\"]\nauth_request = \"proxy:auth\"\n",
            authority.address()
        ),
    );
    let mut client = kirin.connect();
    client.send("GET /x HTTP/1.1\r\nHost: a\r\n\r\n");
    wait_for("the question", || (silent.load(Ordering::SeqCst) == 1).then_some(()));
    drop(client);
    wait_for("the end of the question", || (served.load(Ordering::SeqCst) == 1).then_some(()));
}

/// The answers of both applications depend on the visitor, and both say that everybody may share
/// them for a while.
const CACHED: &str = r#"
[[app]]
name = "auth"
load = "auth.psgi"
workers = 1
[[app]]
name = "web"
load = "web.psgi"
workers = 1
[[route]]
path = "/shared"
try = ["app:web"]
auth_request = { ask = "app:auth", user = "X-User" }
cache = true
[[route]]
path = "/personal"
try = ["app:web"]
auth_request = { ask = "app:auth", user = "X-User" }
cache = { ttl = "60s" }
"#;

const AUTH_APP: &str = r#"
sub {
    my $user = shift->{HTTP_X_SIGN_ON} or return [401, [], ['who?']];
    return [204, ['X-User' => $user], []];
};
"#;

const WEB_APP: &str = r#"
my $count = 0;
sub {
    my $env = shift;
    my @fields = ('Content-Type' => 'text/plain');
    push @fields, 'Cache-Control' => 'public, max-age=60' if $env->{PATH_INFO} =~ /shared/;
    my ($user, $type, $field) = map { $env->{$_} // 'none' } qw(REMOTE_USER AUTH_TYPE HTTP_X_USER);
    return [200, \@fields, [++$count . " $user $type $field"]];
};
"#;

#[test]
fn the_cache_shares_only_what_the_application_calls_public() {
    let site = Site::new().with("auth.psgi", AUTH_APP).with("web.psgi", WEB_APP);
    let kirin = Kirin::start(&site, &format!("[[listener]]\naddress = \"127.0.0.1:0\"\n{CACHED}"));
    let get = |target: &str, user: &str| {
        let fields = if user.is_empty() { String::new() } else { format!("X-Sign-On: {user}\r\n") };
        // The field of the visitor's name is forged.
        kirin.connect().request("GET", target, &format!("{fields}x-user: root\r\n"))
    };
    assert_eq!(get("/personal", "mari").text(), "1 mari none mari");
    assert_eq!(get("/personal", "john").text(), "2 john none john");
    assert_eq!(get("/shared", "mari").text(), "3 mari none mari");
    assert_eq!(get("/shared", "john").text(), "3 mari none mari", "it is public");
    for target in ["/personal", "/shared"] {
        let reply = get(target, "");
        assert_eq!((reply.status, reply.text().as_str()), (401, "who?"), "{target}");
    }
}

#[test]
fn lemonldap_ng_decides_by_path_and_session() {
    let site = Site::new();
    let root = site.root().display().to_string();
    let site = site
        .with("lemonldap-ng.ini", format!("[all]\nlogLevel = warn\nlogger = Lemonldap::NG::Common::Logger::Std\nlocalSessionStorage = Cache::NullCache\n[configuration]\ntype = File\ndirName = {root}/conf\n[handler]\nhttps = 0\n"))
        .with("sessions/.keep", "")
        .with("lock/.keep", "")
        .with("conf/lmConf-1.json", LEMONLDAP_CONF.replace("ROOT", &root))
        .with("session.pl", LEMONLDAP_SESSION.replace("ROOT", &root))
        .with("sso.psgi", LEMONLDAP_APP.replace("ROOT", &root))
        .with("web.psgi", "sub { my $env = shift; [200, [], [join ' ', map { $env->{$_} // '-' } qw(PATH_INFO REMOTE_USER HTTP_AUTH_USER HTTP_AUTH_MAIL HTTP_LM_REMOTE_USER)]] }");
    let session =
        std::process::Command::new("perl").arg(site.path("session.pl")).output().expect("perl");
    assert!(session.status.success(), "{}", String::from_utf8_lossy(&session.stderr));
    let session = String::from_utf8(session.stdout).expect("an id");
    let kirin = Kirin::start(
        &site,
        "[[listener]]\naddress = \"127.0.0.1:0\"\n[[app]]\nname = \"sso\"\nload = \"sso.psgi\"\nworkers = 1\n\
         [[app]]\nname = \"web\"\nload = \"web.psgi\"\nworkers = 1\n\
         [[route]]\npath = \"/\"\ntry = [\"app:web\"]\n\
         auth_request = { ask = \"app:sso\", fields = [\"Auth-User\", \"Auth-Mail\"], user = \"Lm-Remote-User\" }\n",
    );
    let get = |target: &str, cookie: &str| {
        let fields = format!("Auth-User: root\r\nLm-Remote-User: root\r\n{cookie}");
        let mut client = kirin.connect();
        client.send(format!("GET {target} HTTP/1.1\r\nHost: test.example.org\r\n{fields}\r\n"));
        client.read_reply()
    };
    let signed_on = format!("Cookie: lemonldap={session}\r\n");
    let passed = get("/page?a=b", &signed_on);
    assert_eq!(passed.text(), "/page mari mari mari@example.org mari", "{}", passed.head);
    for target in ["/page", "/admin"] {
        for cookie in ["", "Cookie: lemonldap=0123456789abcdef0123456789abcdef\r\n"] {
            let reply = get(target, cookie);
            assert_eq!(reply.status, 302, "{}", reply.head);
            let location = reply.field("location").unwrap_or_default();
            assert!(location.starts_with("http://auth.example.org/?url="), "{location}");
        }
    }
    for target in ["/admin", "/admin/x", "//admin", "/x/../admin", "/%61dmin/", "/x/..//%61dmin"] {
        assert_eq!(get(target, &signed_on).status, 403, "{target}");
    }
}

const LEMONLDAP_CONF: &str = r#"{"cfgNum":"1","cfgAuthor":"test","cfgDate":"1","cookieName":"lemonldap",
"domain":"example.org","portal":"http://auth.example.org/","globalStorage":"Apache::Session::File",
"globalStorageOptions":{"Directory":"ROOT/sessions","LockDirectory":"ROOT/lock"},
"localSessionStorage":"Cache::NullCache",
"locationRules":{"test.example.org":{"default":"accept","^/admin":"$uid eq \"root\""}},
"exportedHeaders":{"test.example.org":{"Auth-User":"$uid","Auth-Mail":"$mail"}},
"whatToTrace":"uid","securedCookie":0,"timeout":72000}"#;

const LEMONLDAP_SESSION: &str = r"
use v5.16; use warnings;
use Lemonldap::NG::Common::Session;
my $session = Lemonldap::NG::Common::Session->new(
    storageModule        => 'Apache::Session::File',
    storageModuleOptions => { Directory => 'ROOT/sessions', LockDirectory => 'ROOT/lock' },
    kind => 'SSO', force => 1,
    info => { uid => 'mari', mail => 'mari@example.org', _utime => time, _lastSeen => time });
die $session->error if $session->error;
print $session->id;
";

const LEMONLDAP_APP: &str = r"
BEGIN { $ENV{LLNG_DEFAULTCONFFILE} = 'ROOT/lemonldap-ng.ini' }
use Lemonldap::NG::Handler::Server::Traefik;
Lemonldap::NG::Handler::Server::Traefik->run({});
";
