//! Paths that two readers could take for different ones, through the built program. What code sees
//! is the path by which Kirin has found the route, in all the variables that tell it.

use std::process::Command;

use kirin_tests::{Backend, BackendConnection, Kirin, Site};

/// An application that shows the variables that tell the path.
const PSGI: &str = r#"
use v5.16; use warnings;
sub {
    my $env = shift;
    my $text = join ' ', map { "$_=$env->{$_}" } qw(REQUEST_URI SCRIPT_NAME PATH_INFO);
    return [200, ['Content-Type' => 'text/plain'], [$text]];
};
"#;

/// The users file. No request of the tests has a password.
const USERS: &str = "bob:$2y$08$48biTCX6hLFLuo1X9oacu.C9feoeVL5TxFGhMA0T2i1gjC8TRnAwi\n";

/// Answers an SCGI request with the variables that tell the path.
fn answer_scgi(mut connection: BackendConnection) {
    let mut digits = String::new();
    while let Some([digit @ b'0'..=b'9']) = connection.take(1).as_deref() {
        digits.push(char::from(*digit));
    }
    let Some(block) = connection.take(digits.parse().expect("a length")) else { return };
    let texts: Vec<_> = block.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
    let value = |name: &str| {
        let pair = texts.chunks_exact(2).find(|pair| pair[0] == name);
        format!("{name}={}", pair.expect(name)[1])
    };
    let shown = ["REQUEST_URI", "SCRIPT_NAME", "PATH_INFO"].map(value).join(" ");
    connection.send(format!("Status: 200 OK\r\nContent-Type: text/plain\r\n\r\n{shown}"));
}

struct Running {
    kirin: Kirin,
    _site: Site,
    _servers: [Backend; 2],
}

/// Starts Kirin with routes `/KIND` and `/KIND-at`, which is mounted, for each kind of code.
fn serve() -> Running {
    let http = Backend::answering(|asked| {
        let target = asked.target();
        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{target}", target.len())
    });
    let scgi = Backend::start(answer_scgi);
    let site = Site::new().with("app.psgi", PSGI).with("users", USERS);
    let mut config = format!(
        "threads = 1\n[[listener]]\naddress = \"127.0.0.1:0\"\n\
         [[app]]\nname = \"web\"\nload = \"app.psgi\"\nworkers = 1\n\
         [[upstream]]\nname = \"http\"\nservers = [\"http://{}\"]\n\
         [[upstream]]\nname = \"scgi\"\nservers = [\"scgi://{}\"]\n",
        http.address(),
        scgi.address()
    );
    for (kind, place) in [("app", "app:web"), ("scgi", "proxy:scgi"), ("http", "proxy:http")] {
        for (path, rest) in [
            (format!("/{kind}"), ""),
            (format!("/{kind}/members"), "basic_auth = \"users\"\n"),
            (format!("/{kind}-at"), "rewrite = \"/\"\n"),
        ] {
            config.push_str(&format!("[[route]]\npath = \"{path}\"\ntry = [\"{place}\"]\n{rest}"));
        }
    }
    Running { kirin: Kirin::start(&site, &config), _site: site, _servers: [http, scgi] }
}

#[test]
fn all_variables_tell_the_path_of_the_route() {
    let running = serve();
    let mut client = running.kirin.connect();
    for (sent, uri, script_name, path_info) in [
        // Nothing is ambiguous here.
        ("/K/a%20b?c=../d", "/K/a%20b?c=../d", "", "/K/a b"),
        ("/K/a%2Fb", "/K/a%2Fb", "", "/K/a/b"),
        ("/K/%61", "/K/%61", "", "/K/a"),
        ("/K/http://a//b?//", "/K/http://a//b?//", "", "/K/http://a//b"),
        ("/K//", "/K//", "", "/K//"),
        ("/K/.a/..b/c..", "/K/.a/..b/c..", "", "/K/.a/..b/c.."),
        // Dots, plain and encoded.
        ("/K/x/../y?q=../z", "/K/y?q=../z", "", "/K/y"),
        ("/x/../K/y", "/K/y", "", "/K/y"),
        ("/K/x/%2e%2E/y", "/K/y", "", "/K/y"),
        ("/K/x%2F..%2fy", "/K/y", "", "/K/y"),
        ("/K/./y", "/K/y", "", "/K/y"),
        ("/K/x/..", "/K/", "", "/K/"),
        ("/K/a%20b//../c%2fd", "/K/c/d", "", "/K/c/d"),
        // Empty segments stay, also at the start.
        ("//K/y", "//K/y", "", "//K/y"),
        ("/%2FK/y//z?", "/%2FK/y//z?", "", "//K/y//z"),
        ("http://test//K/y", "//K/y", "", "//K/y"),
        // The same where the application is mounted.
        ("/K-at/a%20b", "/K-at/a%20b", "/K-at", "/a b"),
        ("/K-at/a%2Fb", "/K-at/a%2Fb", "/K-at", "/a/b"),
        ("/K-at/x/../y?z", "/K-at/y?z", "/K-at", "/y"),
        ("/x/%2e%2e/K-at/y", "/K-at/y", "/K-at", "/y"),
        ("/K-at/a//b", "/K-at/a/b", "/K-at", "/a/b"),
        ("/K-at//y", "/K-at/y", "/K-at", "/y"),
        ("/K-at%2F%2fy", "/K-at/y", "/K-at", "/y"),
        ("/K-at", "/K-at", "/K-at", ""),
        ("/K-at/", "/K-at/", "/K-at", "/"),
        ("/K-at/x/..", "/K-at/", "/K-at", "/"),
    ] {
        for kind in ["app", "scgi"] {
            let target = sent.replace('K', kind);
            let expected =
                format!("REQUEST_URI={uri} SCRIPT_NAME={script_name} PATH_INFO={path_info}");
            let seen = client.get(&target).text();
            assert_eq!(seen, expected.replace('K', kind), "{target}");
        }
    }
    for (sent, forwarded) in [
        ("/http/a%2Fb//c?d=../e", "/http/a%2Fb//c?d=../e"),
        ("/http/x/%2e%2e/y?z", "/http/y?z"),
        ("//http/y", "//http/y"),
        ("http://test//http/y?z", "//http/y?z"),
        ("/http-at/x/../y?z", "/y?z"),
        ("/http-at//y", "/y"),
    ] {
        assert_eq!(client.get(sent).text(), forwarded, "{sent}");
    }
}

#[test]
fn no_spelling_shows_code_a_path_of_a_protected_route() {
    let running = serve();
    let mut client = running.kirin.connect();
    let spellings = [
        "/K/members/x",
        "/K/members/../x",
        "/K/members/%2e%2e/x",
        "/K/members%2F..%2Fx",
        "/K/members/./../x",
        "/K/x/../members/x",
        "//K/members/x",
        "//x/../K/members",
        "//x/K/members",
        "///K/members",
        "/%2f/K/members",
        "/%2Fx/K/members/",
        "/./K/members",
        "/K/%6dembers",
        "/K//members/x",
        "/K/members//../x",
        "/K/.//members",
        "http://test/K/members/../x",
        "http://test//x/K/members",
    ];
    for kind in ["app", "scgi", "http"] {
        for spelling in spellings {
            let target = spelling.replace('K', kind);
            let reply = client.get(&target);
            if reply.status == 401 || reply.status == 404 {
                continue;
            }
            assert_eq!(reply.status, 200, "{target}");
            // No variable of the application leads below /members.
            for value in reply.text().split(' ') {
                let value = value.split_once('=').map_or(value, |(_, value)| value);
                let members = format!("/{kind}/members");
                assert!(!value.starts_with(&members), "{target}: {}", reply.text());
            }
        }
    }
}

/// The gitweb of the Debian package, as a CGI program behind Plack, mounted at `/git`.
const GITWEB: &str = r#"
use v5.16; use warnings;
use Plack::App::WrapCGI;
Plack::App::WrapCGI->new(script => '/usr/share/gitweb/gitweb.cgi', execute => 1)->to_app;
"#;

/// Creates a repository with a directory and a file.
fn repository(site: &Site) {
    let script = "git init -q repos/demo.git && cd repos/demo.git && mkdir doc && echo hello > doc/a.txt && \
                  git add . && git -c user.name=t -c user.email=t@example.org commit -q -m first && \
                  echo 'A demo' > .git/description";
    let made = Command::new("sh").args(["-ec", script]).current_dir(site.root()).output();
    let made = made.expect("sh");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

/// Returns the values of `href` in a page, of those that lead into the site.
fn links(page: &str) -> Vec<&str> {
    let found = page.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next());
    found.filter(|link| link.contains("/git")).collect()
}

#[test]
fn gitweb_builds_the_same_links_however_its_path_is_spelled() {
    let site = Site::new().with("app.psgi", GITWEB);
    repository(&site);
    let settings = format!(
        "our $projectroot = '{}';\n$feature{{'pathinfo'}}{{'default'}} = [1];\n1;\n",
        site.path("repos").display()
    );
    let site = site.with("gitweb.conf", settings);
    let kirin = Kirin::start(
        &site,
        &format!(
            "threads = 1\n[[listener]]\naddress = \"127.0.0.1:0\"\n[[app]]\nname = \"web\"\n\
             load = \"app.psgi\"\nworkers = 1\nenv = {{ GITWEB_CONFIG = \"{}\" }}\n\
             [[route]]\npath = \"/git\"\ntry = [\"app:web\"]\nrewrite = \"/\"\n",
            site.path("gitweb.conf").display()
        ),
    );
    let mut client = kirin.connect();
    for (plain, spellings) in [
        ("/git/", &["/git/x/../", "/x/..//git/", "/git//"][..]),
        (
            "/git/demo.git/.git",
            &["/git/x/../demo.git/.git", "/git/demo.git/%2e/.git", "/git//demo.git//.git"],
        ),
        (
            "/git/demo.git/.git/tree/HEAD:/doc",
            &["/git/demo.git/.git/tree/../tree/HEAD:/doc", "/git/./demo.git/.git/tree/HEAD:/doc"],
        ),
    ] {
        let page = client.get(plain);
        assert_eq!(page.status, 200, "{plain}: {}", page.text());
        let page = page.text();
        let expected = links(&page);
        assert!(expected.len() > 2, "{plain} has links: {page}");
        for link in &expected {
            assert!(!link.contains("/../") && !link.contains("/git/git"), "{plain}: {link}");
        }
        for spelling in spellings {
            let other = client.get(spelling);
            assert_eq!(other.status, 200, "{spelling}");
            assert_eq!(links(&other.text()), expected, "{spelling}");
        }
    }
}
