//! `kirin upstream`: servers are taken out of service and back, and weighed, while Kirin runs.

use kirin_tests::{Backend, Kirin, Site, run_kirin};

fn answering(text: &'static str) -> Backend {
    Backend::answering(move |_| {
        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{text}", text.len())
    })
}

struct Served {
    kirin: Kirin,
    site: Site,
    first: String,
    config: String,
    _backends: [Backend; 2],
}

fn serve(more: &str) -> Served {
    serve_at("127.0.0.1", more)
}

/// Serves two servers, of which the first has its address by this host.
fn serve_at(host: &str, more: &str) -> Served {
    let backends = [answering("first"), answering("second")];
    let [first, second] = backends.each_ref().map(Backend::address);
    let first = format!("{host}:{}", first.port());
    let config = format!(
        "threads = 2\n[[listener]]\naddress = \"127.0.0.1:0\"\n[[upstream]]\nname = \"api\"\n\
         servers = [\"{first}\", \"{second}\"]\n{more}[[route]]\npath = \"/\"\ntry = [\"proxy:api\"]\n"
    );
    let site = Site::new();
    let kirin = Kirin::start(&site, &config);
    Served { kirin, site, first, config, _backends: backends }
}

impl Served {
    /// Runs a command. Returns its status, and what it has printed.
    fn command(&self, words: &[&str]) -> (Option<i32>, String) {
        let output = run_kirin(&self.site, words);
        let said = [&output.stdout[..], &output.stderr[..]].concat();
        (output.status.code(), String::from_utf8_lossy(&said).into_owned())
    }

    fn upstream(&self, action: &str, more: &[&str]) {
        let (code, said) =
            self.command(&[&["upstream", action, "api", &self.first][..], more].concat());
        assert_eq!(code, Some(0), "{said}");
        assert!(said.contains(&self.first), "{said}");
    }

    /// Returns how many of some requests the first server has answered.
    fn of_first(&self) -> usize {
        (0..16).filter(|_| self.kirin.get("/").text() == "first").count()
    }
}

#[test]
fn a_server_drains_is_disabled_and_comes_back() {
    let served = serve("sticky_cookie = \"server\"\n");
    let cookie_of_first = loop {
        let reply = served.kirin.get("/");
        let cookie = reply.field("set-cookie").expect("a cookie").split(';').next();
        if reply.text() == "first" {
            break format!("Cookie: {}\r\n", cookie.expect("a cookie"));
        }
    };
    let of_visitor = || {
        let mut client = served.kirin.connect();
        client.request("GET", "/", &cookie_of_first).text()
    };
    served.upstream("drain", &[]);
    assert_eq!((served.of_first(), of_visitor()), (0, "first".into()));
    let (_, status) = served.command(&["status"]);
    assert!(status.contains(&format!("{} is draining by an operator", served.first)), "{status}");
    served.upstream("disable", &[]);
    assert_eq!((served.of_first(), of_visitor()), (0, "second".into()));
    // A reload that does not change the server leaves it as it is.
    let config = format!("{}[[route]]\npath = \"/x\"\nredirect = \"/\"\n", served.config);
    std::fs::write(served.site.path("kirin.toml"), config).expect("kirin.toml");
    let (code, said) = served.command(&["reload"]);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(served.of_first(), 0);
    // So does one that changes another key of the upstream.
    let config = served.config.replace("sticky", "max_failures = 7\nsticky");
    std::fs::write(served.site.path("kirin.toml"), config).expect("kirin.toml");
    let (code, said) = served.command(&["reload"]);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(served.of_first(), 0);
    served.upstream("enable", &[]);
    assert!(served.of_first() > 0);
}

#[test]
fn a_server_with_a_name_stays_disabled_over_a_reload() {
    let served = serve_at("localhost", "");
    assert!(served.of_first() > 0);
    served.upstream("disable", &[]);
    let config = served.config.replace("[[route]]", "max_failures = 7\n[[route]]");
    std::fs::write(served.site.path("kirin.toml"), config).expect("kirin.toml");
    let (code, said) = served.command(&["reload"]);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(served.of_first(), 0);
}

#[test]
fn a_server_is_weighed() {
    let served = serve("");
    served.upstream("weigh", &["15"]);
    let many = served.of_first();
    assert!(many >= 13, "{many}");
    let (_, status) = served.command(&["status"]);
    assert!(status.contains("has the weight 15 by an operator, configured is 1"), "{status}");
    served.upstream("weigh", &[]);
    // The other server makes up for a turn or two on each event loop.
    served.of_first();
    let half = served.of_first();
    assert!((6..=10).contains(&half), "{half}");
}

#[test]
fn a_wrong_change_says_what_there_is() {
    let served = serve("");
    let first = served.first.as_str();
    for (words, part) in [
        (&["upstream", "drain", "apx", first][..], "there is no upstream `apx`; there is api"),
        (&["upstream", "drain", "api", "10.0.0.1:80"], first),
        (&["upstream", "weigh", "api", first, "0"], "allowed is 1 to 1000"),
        (&["upstream", "weigh", "api", first, "x"], "invalid value"),
    ] {
        let (code, said) = served.command(words);
        assert!(code != Some(0) && said.contains(part), "{words:?}: {said}");
    }
    assert!(served.of_first() > 0);
}
